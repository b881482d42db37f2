/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The last descriptors that the process may have are not for events. They are for what must not
 * fail: libsystemd gives up the connection to the bus when it has no room for the descriptors of a
 * message that somebody sends (recvmsg(2), MSG_CTRUNC).
 */

#include <stdint.h>

#define FD_RESERVE 256 /* or an eighth of RLIMIT_NOFILE, where that is less */

/* The first number of those. */
uint64_t fd_reserve_first(void);

/* An event that was just opened: fd again, or -EMFILE, and it is closed, where it would take one of
 * those. The kernel gives out the lowest number that is free. */
int fd_reserve_check(int fd);
