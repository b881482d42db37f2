/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measures how many counters of a PMU are free, and harms nobody: it never pins, because a
 * CPU-pinned event would throw other people's task-pinned ones off the PMU for good.
 *
 * breakpoint: opens (disabled) until the kernel says ENOSPC; a slot is reserved from open to close.
 * Counting PMUs: a successful open proves nothing, so one flexible group of the wanted size is put
 * on each CPU and looked at. The kernel schedules a new flexible group after all that are there; so
 * it is on the PMU at once only where so many counters are free, and running == enabled > 0 of two
 * such groups, one after the other, proves it. A group that waited for its turn would come to it
 * some time, and prove nothing; so each look is with new groups, which are closed after it. Who is
 * not free at the first look is looked at again, ever more rarely, for PROBE_WATCH_USEC: others may
 * just be leaving.
 *
 * Not to be seen are events of tasks that do not run: pinned ones that come back with their task,
 * and flexible ones, which give way to any that is CPU-wide.
 *
 * A probe never waits: after probe_begin() the caller calls probe_look() when the time that it gave
 * has come, until it says something else than PROBE_AGAIN.
 */

#include "perf/pmu/pmu.h"

typedef struct Probe Probe;
typedef struct ProbeCpu ProbeCpu;

#define PROBE_WATCH_USEC (50 * USEC_PER_MSEC)
#define PROBE_STEP_USEC                                                                            \
        (2 * USEC_PER_MSEC) /* to the second look; each later one takes twice as long */
#define PROBE_REST_USEC 50  /* what passes until another task runs on this CPU is some µs */
#define PROBE_GROUP_MAX                                                                            \
        64u /* larger groups are not tried: such a PMU has no limit that matters                   \
             */

enum {
        PROBE_DONE,  /* free[] of every CPU is set */
        PROBE_AGAIN, /* look again at next_usec */
};

struct ProbeCpu {
        unsigned cpu;
        unsigned wanted;
        unsigned free; /* so many were free, as far as wanted */
        bool settled;
};

struct Probe {
        const Pmu *pmu;
        uint64_t begun_usec; /* CLOCK_MONOTONIC, as all times here */
        uint64_t next_usec;
        uint64_t step_usec;
        bool again;
        size_t n_cpus;
        ProbeCpu *cpus;
};

/* How many general events fit on one CPU at once, by growing a group until the kernel refuses a
 * member (a group is validated against an empty PMU, so nobody is in the way) or, for breakpoints,
 * by opening them for this process until none is left: those of other processes are not in the way,
 * those of CPUs are where there are some on every CPU and the architecture does not say how many
 * slots it has. Sets counters, probed and measured of pmu. 0 when there is nothing
 * to probe it with. */
int probe_capacity(Pmu *pmu, const CpuSet *online);

/* Whether probe_begin() can tell anything about it. */
bool probe_can(const Pmu *pmu);

/* Looks for wanted free counters on each of the CPUs. Where none can be opened, for the CPU is
 * offline or the kernel refuses, none is free. -ENOMEM, -EMFILE, -ENFILE; -EINVAL for what it can
 * tell nothing about. */
int probe_begin(const Pmu *pmu, const CpuSet *cpus, unsigned wanted, uint64_t now_usec,
                Probe **ret);

/* The same with a number for each CPU, as wants() says; 0 asks for nothing. */
typedef unsigned (*ProbeWants)(void *userdata, const Pmu *pmu, unsigned cpu);
int probe_begin_each(const Pmu *pmu, const CpuSet *cpus, ProbeWants wants, void *userdata,
                     uint64_t now_usec, Probe **ret);
int probe_look(Probe *p, uint64_t now_usec);

/* How many are free on one CPU at this moment, at one look: the largest flexible group that is on
 * the PMU as soon as it is enabled (strangers' flexible events are scheduled before it), or for
 * breakpoints what can be opened. -EOPNOTSUPP when the PMU cannot be probed, -ENODEV when the CPU
 * is offline (breakpoints; else 0), -ENOMEM, -EMFILE. */
int probe_free_now(const Pmu *pmu, unsigned cpu, unsigned max);

/* Closes what is open; NULL is fine. */
Probe *probe_free(Probe *p);
DEFINE_CLEANUP(Probe *, probe_free)
