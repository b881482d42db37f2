/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events by the names that libpfm4 has for this machine's CPU: "EVENT:UMASK:MODIFIER",
 * "pmu::EVENT".
 */

#include "perf/event/event.h"

/* Sets type, config*, exclude_* and precise_ip of attr. perf's modifiers ("uk", "pp") are taken
 * too. What libpfm4 offers beyond that (period, freq, pinned, excl, cpu) is no part of an event:
 * INVALID_EVENT. NO_SUCH_EVENT names the part that is not known and what is near to it. */
int pfm_event_parse(const char *string, struct perf_event_attr *attr, Refusal *why);

/* As event_list(), for the events that can be opened here: "pmu::EVENT", "pmu::EVENT:UMASK". */
int pfm_event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata);
