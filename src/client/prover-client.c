/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "prover-client.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/fd-message.h"

static int on_question(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char path[sizeof("/proc/-2147483648/maps")];
        ProverClient *p = userdata;
        int32_t pid;
        int proof;

        if (recv(fd, &pid, sizeof(pid), MSG_DONTWAIT) != sizeof(pid)) {
                if (revents & EPOLLHUP)
                        p->source = sd_event_source_disable_unref(p->source);
                return 0;
        }
        (void) snprintf(path, sizeof(path), "/proc/%d/maps", (int) pid);
        proof = open(path, O_RDONLY | O_CLOEXEC);
        (void) fd_message_send(fd, &pid, sizeof(pid), &proof, proof >= 0, MSG_DONTWAIT);
        close_fd(proof);
        return 0;
}

int prover_client_start(ProverClient *p, sd_event *event, int *ret_service) {
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        *p = (ProverClient){ .socket = pair[0] };
        r = sd_event_add_io(event, &p->source, p->socket, EPOLLIN, on_question, p);
        if (r < 0) {
                close_fd(pair[1]);
                prover_client_done(p);
                return r;
        }
        *ret_service = pair[1];
        return 0;
}

void prover_client_done(ProverClient *p) {
        p->source = sd_event_source_disable_unref(p->source);
        p->socket = close_fd(p->socket);
}
