/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PCP's lock: an fcntl(2) read lock on the first byte of a file, which an unmodified
 * pmdaperfevent(1) checks every 100 ms. Any number of processes can hold it at once. It belongs to
 * the process, and ends with it.
 */

#include "core/refusal.h"

/* Never waits. The file must exist and be a regular one: no other software would see a lock on
 * anything else. The descriptor must stay open: closing any descriptor of that file drops the
 * lock. Refusals: NOT_PERMITTED, BUSY (naming the process that has locked it for writing),
 * INVALID_ARGS. */
int lockfile_take(const char *path, int *ret_fd, Refusal *why);
