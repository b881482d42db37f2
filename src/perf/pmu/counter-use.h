/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which counters an event takes: its own (fixed) one, a general one, or two of these (arm64's
 * "long" events, AMD's large increments). Found as capacities are, by groups that the kernel
 * validates; so it is right for the attr as it is, whatever its filters are.
 *
 * Not to be seen this way are events that only certain general counters can count: two of them may
 * want the same one.
 */

#include "core/shape.h"
#include "perf/pmu/pmu.h"

/* Of attr its type, config, config1, config2, exclude_* and precise_ip are looked at.
 * Where nothing is known of the PMU, or the kernel does not take the event, it is one general
 * counter, also after -ENOMEM, -EMFILE or -ENFILE; on PMUs that are never scarce it is none. */
int counter_use_measure(const Pmu *pmu, const struct perf_event_attr *attr, CounterUse *ret);
