/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Processes that create processes or threads all the time.
 */

#include "actor.h"
#include "counter-calls.h"
#include "rounds.h"

#define STORM_FORKERS 6
#define STORM_STAYING 6
#define STORM_ROUNDS  ROUNDS(10)

typedef struct Storm Storm;

/* Shared with the storm's processes. From `go` on every one of them, or every thread, writes once
 * to watched[0], and counts that itself. The threads that were there from the start go on to do so
 * at each turn, until `over`; n_done of them have no others any more. */
struct Storm {
        _Atomic bool go, over;
        _Atomic uint64_t n_born, n_written, n_done, turn;
};

Storm *storm_new(void);
void storm_free(Storm *storm);

/* For actor_new(), with the address of a Storm *. The actor says 'd' when all have written, or the
 * storm is over. */

/* Forkers whose children start and end all the time, and some of whose children stay. */
int play_storm(int fd, const void *data);

/* Threads that start threads, all in one process. */
int play_thread_storm(int fd, const void *data);
