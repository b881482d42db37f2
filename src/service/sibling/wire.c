/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wire.h"

#include <sys/socket.h>

void wire_close(int *fds, size_t n_fds) {
        for (size_t i = 0; i < n_fds; i++)
                fds[i] = close_fd(fds[i]);
}

ssize_t wire_receive(int socket, void *data, size_t size, int *ret_fds, size_t n_fds,
                     bool *ret_lost, int flags) {
        size_t n_received;
        int how;
        ssize_t n;

        for (size_t i = 0; i < n_fds; i++)
                ret_fds[i] = -1;
        n = fd_message_receive(socket, data, size, ret_fds, n_fds, &n_received, flags, &how);
        if (n < 0)
                return n == -EAGAIN || n == -EINTR ? -EAGAIN : 0;
        *ret_lost = how & MSG_CTRUNC;
        return how & MSG_TRUNC ? -EBADMSG : n;
}
