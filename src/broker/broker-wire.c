/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker-wire.h"

#include <sys/socket.h>

#include "core/fd-message.h"

static void fds_close(int *fds, size_t n) {
        for (size_t i = 0; i < n; i++)
                fds[i] = close_fd(fds[i]);
}

/* Bytes; 0: the other end is closed; -EAGAIN; -EBADMSG. A descriptor that found no room is one that
 * is missing. */
static ssize_t wire_receive(int socket, void *data, size_t size, int *ret_fds, size_t n_fds,
                            int flags) {
        size_t n_received;
        int how;
        ssize_t n;

        for (size_t i = 0; i < n_fds; i++)
                ret_fds[i] = -1;
        n = fd_message_receive(socket, data, size, ret_fds, n_fds, &n_received, flags, &how);
        if (n == -EINTR)
                return -EAGAIN;
        if (n < 0)
                return n == -EAGAIN ? n : 0;
        if (how & MSG_TRUNC) {
                fds_close(ret_fds, n_fds);
                return -EBADMSG;
        }
        return n;
}

int broker_wire_begin(int socket, int listener, int page, int prover) {
        int fds[] = { listener, page, prover };

        return fd_message_send(socket, "", 1, fds, ELEMENTSOF(fds) - (prover < 0), MSG_DONTWAIT);
}

int broker_wire_await(int socket, int *ret_listener, int *ret_page, int *ret_prover) {
        int fds[3];
        char byte;
        ssize_t n = wire_receive(socket, &byte, sizeof(byte), fds, ELEMENTSOF(fds), 0);

        if (n != 1 || fds[0] < 0 || fds[1] < 0) {
                fds_close(fds, ELEMENTSOF(fds));
                return n < 0 ? (int) n : -EBADMSG;
        }
        *ret_listener = fds[0];
        *ret_page = fds[1];
        *ret_prover = fds[2];
        return 0;
}

int broker_request_send(int socket, const BrokerRequest *q, size_t n_attr, int target, int group) {
        int fds[BROKER_REQUEST_FDS];
        size_t n_fds = 0;

        if (target >= 0)
                fds[n_fds++] = target;
        if (group >= 0)
                fds[n_fds++] = group;
        return fd_message_send(socket, q, BROKER_REQUEST_SIZE(n_attr), fds, n_fds, 0);
}

static bool request_is_whole(const BrokerRequest *q, ssize_t n, const int *fds) {
        bool has_target =
                q->target == BROKER_TASK || q->target == BROKER_OTHER || q->target == BROKER_CGROUP;

        return n >= (ssize_t) BROKER_REQUEST_SIZE(0) && q->target < _BROKER_TARGET_MAX &&
               (size_t) has_target + !!q->in_group == (size_t) (fds[0] >= 0) + (fds[1] >= 0);
}

int broker_request_receive(int socket, BrokerRequest *ret, size_t *ret_n_attr, int *ret_target,
                           int *ret_group) {
        int fds[BROKER_REQUEST_FDS];
        ssize_t n = wire_receive(socket, ret, sizeof(*ret), fds, ELEMENTSOF(fds), MSG_DONTWAIT);

        if (n == 0 || n == -EAGAIN || n == -EBADMSG)
                return (int) n;
        if (!request_is_whole(ret, n, fds)) {
                fds_close(fds, ELEMENTSOF(fds));
                return -EBADMSG;
        }
        *ret_n_attr = (size_t) n - BROKER_REQUEST_SIZE(0);
        *ret_group = !ret->in_group ? -1 : fds[1] >= 0 ? fds[1] : fds[0];
        *ret_target = *ret_group == fds[0] ? -1 : fds[0];
        return 1;
}

int broker_reply_send(int socket, const BrokerReply *a, int fd) {
        return fd_message_send(socket, a, sizeof(*a), &fd, fd >= 0, MSG_DONTWAIT);
}

int broker_reply_receive(int socket, BrokerReply *ret, int *ret_fd) {
        ssize_t n;

        do
                n = wire_receive(socket, ret, sizeof(*ret), ret_fd, 1, 0);
        while (n == -EAGAIN);
        if (n == sizeof(*ret) && ret->answer < _BROKER_ANSWER_MAX)
                return 1;
        *ret_fd = close_fd(*ret_fd);
        return n == 0 ? 0 : -EBADMSG;
}
