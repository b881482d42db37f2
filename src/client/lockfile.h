/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PCP's lock: an fcntl(2) read lock on the first byte of a file, which an unmodified
 * pmdaperfevent(1) looks at every 100 ms. Any number of readers have it side by side. It belongs to
 * the process, and ends with it.
 */

#include "core/refusal.h"

/* Never waits. The file has to be there and to be a regular one: a lock on anything else would tell
 * nobody. The descriptor is to be kept: closing any descriptor of that file drops the lock.
 * Refusals: NOT_PERMITTED, BUSY (naming the process that has it locked for writing), INVALID_ARGS.
 */
int lockfile_take(const char *path, int *ret_fd, Refusal *why);
