/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wire.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

typedef union Control {
        struct cmsghdr header;
        char space[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
} Control;

int wire_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds, int flags) {
        Control control;
        struct iovec iov = { (void *) data, size };
        struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > 0) {
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                memset(&control, 0, m.msg_controllen);
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                        .cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
                };
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        }
        return sendmsg(socket, &m, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void wire_close(int *fds, size_t n_fds) {
        for (size_t i = 0; i < n_fds; i++)
                fds[i] = close_fd(fds[i]);
}

ssize_t wire_receive(int socket, void *data, size_t size, int *ret_fds, size_t n_fds,
                     bool *ret_lost, int flags) {
        Control control;
        struct iovec iov = { data, size };
        struct msghdr m = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)),
        };
        ssize_t n;

        for (size_t i = 0; i < n_fds; i++)
                ret_fds[i] = -1;
        n = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                        memcpy(ret_fds, CMSG_DATA(c),
                               MIN(c->cmsg_len - CMSG_LEN(0), n_fds * sizeof(int)));
        *ret_lost = m.msg_flags & MSG_CTRUNC;
        return m.msg_flags & MSG_TRUNC ? -EBADMSG : n;
}
