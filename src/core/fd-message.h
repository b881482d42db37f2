/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Messages with descriptors over a socket (unix(7), SCM_RIGHTS).
 */

#include <sys/types.h>

#include "core/util.h"

#define FD_MESSAGE_MAX 253u /* descriptors of one message: the kernel's SCM_MAX_FD */

/* Flags are those of sendmsg(2). */
int fd_message_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds,
                    int flags);

/* Returns the bytes received (flags are those of recvmsg(2)), 0 when the other end is closed.
 * ret_fds has room for max. ret_flags: MSG_TRUNC, the data did not fit; MSG_CTRUNC, nor did
 * descriptors into ret_fds or into our table (recvmsg(2)). */
ssize_t fd_message_receive(int socket, void *data, size_t size, int *ret_fds, size_t max,
                           size_t *ret_n_fds, int flags, int *ret_flags);
