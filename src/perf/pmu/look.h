/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One look at one CPU: whether these counters are free there at this moment.
 *
 * A successful open proves nothing, so a flexible group is enabled and looked at. The kernel
 * schedules a new flexible group after all that are there, so it is on the PMU at once only where
 * its counters are free: running == enabled > 0 proves it (halted CPUs count nothing, but the times
 * go on). Only where others take turns it may be on at somebody's expense: the kernel moves the
 * first of them behind the others every few milliseconds, behind the new group too when it happens
 * while that is opened. Of two groups that are on one after the other within one such interval this
 * can be true of one only. A look that took longer (something else ran on the CPU of this thread,
 * or an interrupt was slow) proves nothing yet: its group stays on and is watched, for as many
 * intervals as it would take to come to its turn to be moved if there were others.
 *
 * While a thread looks at the CPU that it runs on, the tasks of that CPU do not run, and their
 * pinned events do not count: so that CPU is looked at from another one (kernel_elsewhere()). Where
 * there is no other, this thread rests for a moment while its group is on, and says so.
 * Likewise the process that opens events (perf-open.h) may have run on that CPU: it is idle again
 * when the group is on, so this thread rests for a moment, and the tasks of the CPU run.
 *
 * Not to be seen are pinned events of tasks that do not run at the moment, and flexible events of
 * tasks, which give way to any that is CPU-wide.
 *
 * Breakpoints are opened until the kernel says ENOSPC: a slot is taken from open to close.
 */

#include "core/shape.h"
#include "perf/pmu/pmu.h"
#include "perf/pmu/trial.h"

#define LOOK_REST_USEC  50u  /* what passes until another task runs on a CPU is some µs */
#define LOOK_TAKES_USEC 100u /* a look, where nothing else runs, is no longer */

typedef struct Look Look;

typedef enum LookResult {
        LOOK_TAKEN,
        LOOK_FREE,
        LOOK_WATCHED, /* its group is on: look again at until_usec */
        LOOK_OFFLINE, /* the CPU is offline */
} LookResult;

struct Look {
        const Pmu *pmu;
        unsigned cpu;
        Shape wanted;
        LookResult result;  /* of the last look */
        uint64_t seen_usec; /* when that was so (CLOCK_MONOTONIC): all that is free was open then */
        bool alone; /* it was from that CPU itself: what its tasks have pinned is not surely seen */
        Shape free; /* wanted where that is free, or what look_count() has found */

        Trial *watched; /* a group that is on since a slow look, of this shape */
        Shape watched_shape;
        uint64_t until_usec;
};

/* Whether looks at this PMU can tell anything: it is measured (capacity.h) and has counters that
 * can be taken. */
bool look_can(const Pmu *pmu);

/* Sets the result. A group that is watched stays on while it is free, and is looked at again. 0, or
 * -ENOMEM, -EMFILE, -ENFILE: nothing is known. */
int look_at(Look *l);

/* How much of what is wanted is free, counter by counter: the largest number of general ones, and
 * which of the fixed. The result is LOOK_FREE where that is all of it. What a look was too slow for
 * is not free. */
int look_count(Look *l);

/* Closes what is watched. */
void look_done(Look *l);
