/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Closing descriptors of strangers without waiting.
 *
 * The last close of a socket with SO_LINGER waits until its data was sent, for as long as its owner
 * wants (socket(7)). Whoever still has the socket can set that at any moment, and an AF_UNIX socket
 * may have such a one among what was passed to it and not read. The kernel never waits while a
 * thread or process exits (inet_release()). So a thread with a descriptor table of its own keeps
 * copies while this one closes, and is the last to have them.
 */

#include <pthread.h>
#include <semaphore.h>

#include "core/util.h"

typedef struct FdCopies FdCopies;

struct FdCopies {
        const int *fds;
        size_t n;
        pthread_t thread;
        sem_t made, over;
        int error;
};

/* Copies these descriptors; fds is borrowed until it returns. -errno: there are no copies. Must not
 * be moved. */
int fd_copies_make(FdCopies *c, const int *fds, size_t n);

/* To be called after the descriptors have been closed. */
void fd_copies_drop(FdCopies *c);
