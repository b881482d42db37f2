/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the service's own counters take on one CPU of a PMU, for who measures there.
 */

#include "service/counter/counter-object.h"

/* The order of its oldest event that is open; 0: none is. */
uint64_t counter_set_order(const CounterSet *set);

/* Calls f for each set that counts there, or may: one of a process or cgroup does while a task of
 * these runs there. */
void counters_census(Counters *counters, const Pmu *pmu, unsigned cpu, HoldCount f, void *userdata);

/* Calls f for each set that has, or may have, some of what is missing there. */
void counters_standing(Counters *counters, const Pmu *pmu, unsigned cpu, Shape missing,
                       void (*f)(void *userdata, const CounterSet *set), void *userdata);
