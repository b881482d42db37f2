/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Groups that yield and resume.
 */

#include "perf/group/group.h"

/* After a yield nothing of the group is on the PMU. A resume that fails leaves the group closed,
 * with error set; it can be tried again. If the yield closed descriptors, the targets' threads are
 * listed again: new ones are counted from then on, and ended ones, whose numbers may be reused, are
 * left out. */
void group_yield(Group *g);
int group_resume(Group *g, Refusal *why);

/* The same for some CPUs of a group of scope cpu or cgroup: it yields on these, on top of those
 * where it has yielded already; or resumes on all but these. Where it cannot be opened, error is
 * set, and the other CPUs count. */
void group_yield_cpus(Group *g, const CpuSet *cpus);
int group_resume_cpus(Group *g, const CpuSet *except, Refusal *why);

/* Opens, disabled and in as few messages as possible, what group_resume_cpus(groups[i],
 * except[i]) will open, which follows for each. What cannot be opened is left to that. */
void groups_reopen_ahead(Group *const *groups, const CpuSet *const *except, size_t n);

/* Whether it has yielded on another CPU than these. */
bool group_yields_beyond(const Group *g, const CpuSet *cpus);

/* After an error: opens (and starts) what should be open and is not. */
int group_mend(Group *g, Refusal *why);
