/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One look at one CPU: whether these counters are free there at this moment.
 *
 * A successful open proves nothing, so flexible events are enabled, the last of them opened so, and
 * that one is looked at. When it is opened the kernel puts it behind all events of the CPU and
 * schedules all of them anew, in one go: first those that are pinned, then the others in their
 * order, until one does not fit (ctx_resched() and merge_sched_in() of kernel/events/core.c). So it
 * is on the PMU from the beginning only where everybody else's events and all of the look's were on
 * at that moment: running == enabled > 0 proves it (halted CPUs count nothing, but the times go
 * on). Neither the order of others nor a delay can change that: where they take turns on the PMU
 * somebody waits, before the last one. The time for which it has been enabled says when that moment
 * was.
 *
 * While a thread looks at the CPU that it runs on, the tasks of that CPU do not run, and their
 * pinned events do not count: so that CPU is looked at from another one (kernel_elsewhere()). Where
 * there is no other, this thread rests for a moment while its events are on, and says so.
 * Likewise the process that opens events (perf-open.h) may have run on that CPU: it is idle again
 * when they are on, so this thread rests for a moment, and the tasks of the CPU run.
 *
 * Not to be seen are pinned events of tasks that do not run at the moment, and flexible events of
 * tasks, which give way to any that is CPU-wide.
 *
 * Breakpoints are opened until the kernel says ENOSPC: a slot is taken from open to close.
 */

#include "perf/pmu/trial.h"

#define LOOK_REST_USEC  50u  /* what passes until another task runs on a CPU is some µs */
#define LOOK_TAKES_USEC 100u /* at most, on hardware where nothing else runs */
#define LOOK_SURE_USEC  500u /* how exactly the moment of a look is known */

typedef struct Look Look;

typedef enum LookResult {
        LOOK_TAKEN,
        LOOK_FREE,
        LOOK_OFFLINE, /* the CPU is offline */
} LookResult;

struct Look {
        const Pmu *pmu;
        unsigned cpu;
        Shape wanted;
        LookResult result;  /* of the last look */
        uint64_t seen_usec; /* when that was so (CLOCK_MONOTONIC): all that is free was open then */
        uint64_t took_usec; /* of look_at() */
        bool alone; /* it was from that CPU itself: what its tasks have pinned is not surely seen */
        Shape free; /* wanted where that is free, or what look_count() has found */
        bool ready;
        Trial trial; /* what look_ready() has opened */
};

/* Whether looks at this PMU can tell anything: it is measured (capacity.h) and has counters that
 * can be taken. */
bool look_can(const Pmu *pmu);

/* Sets the result. 0, or -ENOMEM, -EMFILE, -ENFILE: nothing is known. */
int look_at(Look *l);

/* Opens most of what the next look_at() needs, disabled, on a core PMU. look_at() does not close
 * that. So the moments of several looks are nearer to one another when all are made ready first,
 * and closed last. What others open in between is off the PMU for the moment of the look. -ENOMEM,
 * -EMFILE, -ENFILE; what cannot be opened for another reason is for look_at() to find. */
int look_ready(Look *l);
int look_close(Look *l); /* 0 */

/* How much of what is wanted is free, counter by counter: the largest number of general ones, and
 * which of the fixed. The result is LOOK_FREE where that is all of it. */
int look_count(Look *l);
