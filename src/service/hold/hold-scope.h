/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What holds mean for those who open events.
 */

#include "perf/event/event.h"
#include "service/hold/hold-object.h"

/* The number of an active hold, for a yielder that has to yield although no new hold demands it. 0:
 * there is none. */
uint64_t holds_current(const Holds *holds);

/* Whether a hold of uid is granted on the PMU. */
bool holds_grants(const Holds *holds, uid_t uid, const Pmu *pmu);

/* Whether granted holds of uid cover wherever an event of the PMU would count: these CPUs, or, with
 * NULL, all that are online. */
bool holds_cover(const Holds *holds, uid_t uid, const Pmu *pmu, const CpuSet *cpus);

/* REFUSAL_BUSY: another user has an exclusive hold on counters that the events would take. cpus
 * NULL: a process, which may run anywhere. */
int holds_admit_opening(const Holds *holds, uid_t uid, const Event *events, size_t n_events,
                        const CpuSet *cpus, Refusal *why);

/* REFUSAL_NOT_PERMITTED, naming field, where the user has no hold on all of these CPUs (NULL: all
 * that are online) of the events' PMUs: what is pinned to a CPU, or exclusive there, takes counters
 * from everybody else, and ends others' pinned events for good. */
int holds_admit_pinned(const Holds *holds, uid_t uid, const Event *events, size_t n_events,
                       const CpuSet *cpus, const char *field, Refusal *why);
