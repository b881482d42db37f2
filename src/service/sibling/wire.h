/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Messages with descriptors between the service and its siblings, over SOCK_SEQPACKET. They are
 * sent by fd_message_send().
 */

#include "core/fd-message.h"

/* Returns the bytes received; 0: the other end is closed; -EAGAIN: there is no message; -EBADMSG:
 * it is longer than size. Of ret_fds those that came are set, close-on-exec, the others -1.
 * ret_lost: it had descriptors that did not fit into our table (recvmsg(2), MSG_CTRUNC). */
ssize_t wire_receive(int socket, void *data, size_t size, int *ret_fds, size_t n_fds,
                     bool *ret_lost, int flags);

void wire_close(int *fds, size_t n_fds);
