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
 * can be true of one only. A look that took longer (something else ran on the CPU of this thread)
 * says nothing, and is repeated.
 *
 * While a thread looks at the CPU that it runs on, the tasks of that CPU do not run, and their
 * pinned events do not count: so it should look from another one (kernel_place_leave()). Where
 * there is no other, it rests for a moment while its group is on.
 *
 * Not to be seen are pinned events of tasks that do not run at the moment, and flexible events of
 * tasks, which give way to any that is CPU-wide.
 *
 * Breakpoints are opened until the kernel says ENOSPC: a slot is taken from open to close.
 */

#include "core/shape.h"
#include "perf/pmu/pmu.h"

#define LOOK_REST_USEC 50u /* what passes until another task runs on a CPU is some µs */

typedef enum Look {
        LOOK_TAKEN,
        LOOK_FREE,
        LOOK_DISTURBED, /* each of a few attempts took too long: nobody can tell */
        LOOK_OFFLINE,   /* the CPU is offline */
} Look;

typedef struct LookSeen {
        uint64_t usec; /* when (CLOCK_MONOTONIC) */
        bool alone;    /* from that CPU itself: what its tasks have pinned is not surely seen */
} LookSeen;

/* Whether looks at this PMU can tell anything: it is measured (capacity.h) and has counters that
 * can be taken. */
bool look_can(const Pmu *pmu);

/* A Look, or -ENOMEM, -EMFILE, -ENFILE. */
int look_at(const Pmu *pmu, unsigned cpu, Shape shape, LookSeen *ret);

/* How much of a shape is free, counter by counter: the largest number of general ones, and which of
 * the fixed. 0, or LOOK_OFFLINE, or LOOK_DISTURBED with what was surely free, or -errno as above.
 */
int look_count(const Pmu *pmu, unsigned cpu, Shape shape, Shape *ret, LookSeen *ret_seen);
