/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The last descriptors that RLIMIT_NOFILE allows are reserved: events do not get them. libsystemd
 * closes the connection to the bus when it has no room for the descriptors of a message that it
 * receives (recvmsg(2), MSG_CTRUNC).
 */

#include <stdint.h>

#define FD_RESERVE 256 /* or an eighth of RLIMIT_NOFILE, where that is less */

/* The first reserved number. */
uint64_t fd_reserve_first(void);

/* fd is an event that was just opened, or an error. Returns it, or closes it and returns -EMFILE
 * when its number is reserved: the kernel always gives the lowest free number. */
int fd_reserve_check(int fd, uint64_t first);
