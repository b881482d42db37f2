/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perfallocd-sim: the service on a machine with many CPUs, simulated on one that has few.
 *
 * All of it is the service's own code, but for its threads; the kernel's events of CPUs are
 * simulated. A call that would interrupt another CPU (sched_getcpu() tells which one the caller is
 * on) takes some microseconds more, by a clock that goes ahead of the machine's. Which calls do is
 * the kernel's rule (kernel/events/core.c): event_function_call() interrupts for
 * PERF_EVENT_IOC_ENABLE, DISABLE and for close(2), perf_event_read() where the event is enabled;
 * perf_install_in_context() does not for an event that is opened disabled, nor for its siblings.
 *
 * The threads of a team (core/team.h) are simulated one after the other in the main thread: each
 * has a clock of its own, the next call is made by the one whose clock is earliest, as when they
 * take work from a list, and the main thread goes on when the last of them is done. What they
 * compute takes the time of the processor that it takes here and the opener takes here, and each
 * message to the opener or thread that is woken SIM_WAKE_NSEC more. Not simulated: locks of the
 * kernel that CPUs wait for, and caches.
 *
 * The core PMU has SIM_COUNTERS general counters, and nobody else uses them. Environment:
 *
 * - PERFALLOC_SIM_CPUS: how many CPUs there are, as the simulated /sys says too;
 * - PERFALLOC_SIM_USEC: what a call takes that interrupts another CPU;
 * - PERFALLOC_SIM_ALONE: no threads can be had.
 *
 * SIM_CLOCK, where that file is there, tells others how far ahead its clock is: an int64_t, ns.
 */

#include <stdbool.h>
#include <stdint.h>

#define SIM_COUNTERS 6u /* as AMD's since Zen */

#define SIM_CLOCK "/run/rig/sim-clock"

/* The CPU that the simulated thread is on. */
extern _Thread_local unsigned sim_cpu;

#define SIM_WAKE_NSEC 5000u

/* CLOCK_MONOTONIC as the service sees it, and how to put it right. */
uint64_t sim_now_nsec(void);
void sim_set_now_nsec(uint64_t now);

/* What is done in between is done by a thread whose clock is now; returns what it is then. */
void sim_work_begin(uint64_t now);
uint64_t sim_work_end(void);

bool sim_is_alone(void);
