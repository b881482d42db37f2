/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Threads for calls that wait for other CPUs.
 *
 * To switch or read an event of another CPU the kernel interrupts that CPU and waits, 1 to 100 µs.
 * On a machine with many CPUs such calls are made side by side. The threads do nothing else, and
 * each runs on the CPUs of its team only: what is measured on the other CPUs is not disturbed
 * (perf/pmu/looks.h). The thread that gives them work sleeps until it is done.
 */

#include "core/cpuset.h"

typedef struct Team Team;

#define TEAM_PATIENCE_USEC (200 * USEC_PER_MSEC)

/* Starts as many threads as can be had, at least one. They block all signals and have the
 * capabilities of the caller. Their lanes are first_lane, first_lane + 1, ... -EAGAIN: none can be
 * had; -EINVAL: the caller may not use these CPUs; -ENOMEM. */
int team_new(Team **ret, unsigned n_threads, unsigned first_lane, const CpuSet *cpus);
Team *team_free(Team *t); /* NULL is fine */
DEFINE_CLEANUP(Team *, team_free)

/* The lane of the calling thread: 0 in a thread of no team. */
unsigned team_lane(void);

/* Calls f(userdata, 0) to f(userdata, n - 1) in any order, several at once, and returns when all
 * have returned. Each thread that is woken has at least n_each of them to call; with fewer than
 * twice as many, or without a team (NULL), the caller does it all. One thread of a process calls
 * it, and f does not.
 *
 * Tasks of real time may have all CPUs of the team. When nothing has been done for
 * TEAM_PATIENCE_USEC, stuck(userdata) is called, once, and the threads may run on any CPU from then
 * on. */
typedef void (*TeamCall)(void *userdata, size_t i);
void team_run(Team *t, size_t n, size_t n_each, TeamCall f, void *userdata);

void team_set_stuck(Team *t, void (*stuck)(void *userdata), void *userdata);
