/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Looks at several CPUs. On a machine with many CPUs they are made side by side, by threads that
 * have a lane of the opener each (perf-open.h).
 *
 * No thread of the service may run on a CPU that is looked at (look.h), so there are two teams: one
 * on every LOOKS_ONE_IN-th CPU looks at all the others, and then one on these others looks at the
 * CPUs of the first. The thread that waits for them sleeps meanwhile: what else the service has to
 * do would be done on those CPUs.
 *
 * Where tasks of real time have all CPUs of a team, or these went offline, its threads run
 * elsewhere, and what they saw is void. Then, and from then on, this thread looks at one CPU after
 * the other.
 */

#include "core/team.h"
#include "perf/pmu/look.h"

#define LOOKS_ONE_IN      4u
#define LOOKS_CPUS_MIN    16u /* with fewer, waking the threads takes as long as it saves */
#define LOOKS_THREADS_MAX 256u

/* How CPUs are divided: for a team, and the others. Both are empty where there are fewer than
 * LOOKS_CPUS_MIN. -ENOMEM. */
int looks_divide(const CpuSet *cpus, CpuSet *ret_team, CpuSet *ret_others);

/* Starts the teams, once in a process, before looks_stop(). Without CPUs there is nothing to start.
 * -ENOMEM, -EAGAIN: no threads can be had; looks are made all the same. */
int looks_start(const CpuSet *team, const CpuSet *others);
void looks_stop(void);

/* For other calls that wait for CPUs; NULL on small machines. */
Team *looks_team(void);

/* Calls a function of look.h for each, and may change their order: 0, or the first error. After
 * that the rest are left out. */
int looks_make(Look **looks, size_t n, int (*f)(Look *l));
