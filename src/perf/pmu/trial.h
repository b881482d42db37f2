/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events on one CPU, opened to see whether they fit, and closed again. A group shows whether an
 * empty PMU could count it: it is validated when it is opened, and never enabled. Events that count
 * show whether this one does (look.h).
 *
 * They are flexible: a pinned event of a CPU throws other people's pinned events of tasks off the
 * PMU for good.
 */

#include "core/shape.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/pmu.h"

typedef struct Trial Trial;

#define TRIAL_MAX KERNEL_OPEN_MAX /* no PMU that validates groups takes so many */

struct Trial {
        unsigned n;
        int fds[TRIAL_MAX]; /* of a group the leader first */
};

/* The attr of an event of the PMU. */
struct perf_event_attr trial_attr(const PmuEvent *e);

/* Opens one more of a group; the first is the leader. 0, or what perf_event_open(2) says: -EINVAL
 * means that the group does not fit; see trial_is_our_fault(). -E2BIG: it has TRIAL_MAX already. */
int trial_add(Trial *t, const struct perf_event_attr *attr, unsigned cpu);
int trial_add_event(Trial *t, const PmuEvent *e, unsigned cpu);

/* Opens general events, and those of the fixed counters, as a group. On failure nothing is open. */
int trial_open_group(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu);

/* The same, and they count: the last is opened by itself, when all the others are enabled. Events
 * that count make a virtual machine slow, so they are to be stopped before all else. */
int trial_open_counting(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu);

/* The same in two steps: all but the last, which count nothing yet; and the last. On failure of the
 * second the others are open. */
int trial_open_ready(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu);
int trial_open_last(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu);

void trial_stop(Trial *t);

void trial_close(Trial *t);

/* -ENOMEM, -EMFILE and -ENFILE tell nothing about the PMU. */
bool trial_is_our_fault(int error);
