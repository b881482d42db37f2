/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What counters a PMU has: so many general ones on each CPU, and events that have one of their own.
 *
 * Core PMUs: the kernel validates a group against an empty PMU when it is opened, so groups that
 * are opened and never enabled tell, whoever counts meanwhile, and harm nobody. An event has a
 * counter of its own if it fits into a group that fills all others (on Intel a second one of it
 * takes a general counter, and fits as long as there is one). One event tells nothing: it would
 * hide its own counter. A driver that takes any group (RISC-V's) leaves the PMU unknown.
 *
 * Breakpoints: a slot is reserved from open to close, so events of this process are opened until
 * none is left. Those of other processes are not in the way. Those of CPUs are, where there are
 * some on every CPU and the kernel does not tell how many slots there are
 * (kernel_breakpoint_slots()).
 *
 * Software events and tracepoints are never scarce; of other PMUs nobody can tell.
 */

#include "core/shape.h"
#include "perf/pmu/pmu.h"

enum {
        CAPACITY_E_OFFLINE = 1, /* no CPU of a core PMU is online */
};

/* Sets what pmu.h has under "What it has"; pmu->measured tells whether it is known.
 * CAPACITY_E_OFFLINE, -ENOMEM, -EMFILE, -ENFILE: not measured now. */
int capacity_measure(const PmuTable *t, Pmu *pmu);

/* The breakpoint that slots are counted with. */
struct perf_event_attr capacity_breakpoint(void);
