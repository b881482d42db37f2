/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * "PMU/TERM,TERM=VALUE/MODIFIERS": events in the kernel's own form, by the PMU's directories format
 * and events in sysfs (sysfs-bus-event_source-devices-format, -events). A term is, in perf's order,
 *
 *   - config, config1, config2, config3: the whole word;
 *   - a file in format, which has the bits for the value; the default value is 1;
 *   - without a value, or with 1, the name of an event: a file in events, itself a list of terms.
 *
 * Other terms override those of the named event; the last of equal terms applies.
 */

#include "perf/event/event.h"

/* Sets type, config*, exclude_* of attr, pmu, and scale and unit where sysfs has them.
 * NO_SUCH_EVENT, INVALID_EVENT. Breakpoints are refused (their form is "mem:"), as are kprobes and
 * uprobes: their config holds addresses in the memory of the opener, which is not the client. */
int sysfs_event_parse(const PmuTable *pmus, const char *string, Event *e, Refusal *why);

/* As event_list(), for the events that sysfs names: "PMU/NAME/". */
int sysfs_event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata);
