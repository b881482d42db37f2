/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events that several PMUs count, as in perf: "uncore_imc/cas_count_read/" is that event of every
 * PMU uncore_imc_0, uncore_imc_1, ..., and "cycles" on a hybrid CPU is counted on every core PMU.
 */

#include "core/refusal.h"
#include "perf/event/event.h"

typedef int (*EventParser)(const PmuTable *pmus, const char *string, Event *ret, Refusal *why);

/* Parses a string whose PMU is a name without the number of an instance; "imc" is "uncore_imc" too.
 * -ENOENT: it is no such string. */
int event_parse_instances(const PmuTable *pmus, const char *string, EventParser parse, Event *ret,
                          Refusal *why);

/* Adds the other core PMUs of the machine to a generic or raw event that names none. */
int event_spread(const PmuTable *pmus, Event *e);
