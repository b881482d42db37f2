/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Messages with descriptors between the service and its siblings, over SOCK_SEQPACKET.
 */

#include <sys/types.h>

#include "core/util.h"

#define WIRE_FDS_MAX 253u /* the kernel's SCM_MAX_FD */

/* flags are those of sendmsg(2). 0 or -errno. */
int wire_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds, int flags);

/* Returns the bytes received; 0: the other end is closed; -EAGAIN: there is no message; -EBADMSG:
 * it is longer than size. Of ret_fds those that came are set, close-on-exec, the others -1.
 * ret_lost: it had descriptors that did not fit into our table (recvmsg(2), MSG_CTRUNC). */
ssize_t wire_receive(int socket, void *data, size_t size, int *ret_fds, size_t n_fds,
                     bool *ret_lost, int flags);

void wire_close(int *fds, size_t n_fds);
