/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * "PMU/TERM,TERM=VALUE/MODIFIERS": events in the kernel's own form, by what a unit's directories
 * format and events in sysfs say (sysfs-bus-event_source-devices-format, -events). A term is, in
 * perf's order,
 *
 *   - config, config1, config2, config3: the whole word;
 *   - a file in format, which says the bits that the value goes to; without a value it is 1;
 *   - without a value, or with 1, the name of an event: a file in events, itself a list of terms.
 *
 * What is given beside the name of an event takes the place of the event's own; of a term that is
 * given twice the last one counts.
 */

#include "perf/event/event.h"

/* Sets type, config*, exclude_* of attr, pmu, and scale and unit where sysfs has them.
 * NO_SUCH_EVENT, INVALID_EVENT. Breakpoints are written "mem:"; kprobes and uprobes are refused,
 * because their words are addresses in the memory of whoever opens them, which is not the client.
 */
int sysfs_event_parse(const PmuTable *pmus, const char *string, Event *e, Refusal *why);

/* As event_list(), for the events that sysfs names: "PMU/NAME/". */
int sysfs_event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata);
