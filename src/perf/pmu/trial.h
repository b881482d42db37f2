/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A group of events on one CPU, opened to see whether it fits, and closed again: disabled it shows
 * whether an empty PMU could count it (a group is validated when it is opened), enabled whether
 * this one does.
 *
 * It is flexible: a pinned event of a CPU throws other people's pinned events of tasks off the PMU
 * for good.
 */

#include "core/shape.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/pmu.h"

typedef struct Trial Trial;

#define TRIAL_MAX KERNEL_GROUP_MAX /* no PMU that validates groups takes so many */

struct Trial {
        unsigned n;
        int fds[TRIAL_MAX]; /* the leader first */
};

/* The attr of an event of the PMU. */
struct perf_event_attr trial_attr(const PmuEvent *e);

/* Opens one more, disabled; the first is the leader. 0, or what perf_event_open(2) says: -EINVAL
 * means that the group does not fit; see trial_is_our_fault(). -E2BIG: it has TRIAL_MAX already. */
int trial_add(Trial *t, const struct perf_event_attr *attr, unsigned cpu);
int trial_add_event(Trial *t, const PmuEvent *e, unsigned cpu);

/* Opens n general events, and those of the fixed counters. On failure nothing is open. */
int trial_open(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu);

/* Starts a trial that is enabled and whose times stand still. Where nothing is open on a CPU but
 * events of cgroups that do not run there, the kernel starts an event that is enabled later only
 * when the CPU changes to a task of another cgroup (__perf_event_enable() and
 * __perf_install_in_context() of kernel/events/core.c). It starts one at once that is enabled from
 * the beginning, and all others with it. */
void trial_wake(const Pmu *pmu, unsigned cpu);

void trial_close(Trial *t);

/* -ENOMEM, -EMFILE and -ENFILE tell nothing about the PMU. */
bool trial_is_our_fault(int error);
