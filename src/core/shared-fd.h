/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A descriptor with several owners, closed by the last one: for thousands of them that would
 * otherwise have a copy each. Of one thread.
 */

#include "core/util.h"

typedef struct SharedFd SharedFd;

struct SharedFd {
        unsigned n_refs;
        int fd;
};

/* Takes the descriptor over, and closes it if there is no memory. NULL: there is none. */
SharedFd *shared_fd_new(int fd);

SharedFd *shared_fd_ref(SharedFd *s);

/* NULL is fine. */
SharedFd *shared_fd_unref(SharedFd *s);
DEFINE_CLEANUP(SharedFd *, shared_fd_unref)
