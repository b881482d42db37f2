/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fd-message.h"

#include <string.h>
#include <sys/socket.h>

typedef union Control {
        struct cmsghdr header;
        char room[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
} Control;

int fd_message_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds,
                    int flags) {
        Control control;
        struct iovec iov = { (void *) (uintptr_t) data, size };
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

ssize_t fd_message_receive(int socket, void *data, size_t size, int *ret_fds, size_t max,
                           size_t *ret_n_fds, int flags, int *ret_flags) {
        Control control;
        struct iovec iov = { data, size };
        struct msghdr m = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = CMSG_LEN(max * sizeof(int)),
        };
        ssize_t n = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);

        *ret_n_fds = 0;
        if (n < 0)
                return -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                *ret_n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(ret_fds, CMSG_DATA(c), *ret_n_fds * sizeof(int));
        }
        *ret_flags = m.msg_flags;
        return n;
}
