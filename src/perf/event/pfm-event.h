/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events by libpfm4's names: "EVENT:UMASK:MODIFIER", "pmu::EVENT".
 */

#include "perf/event/event.h"

/* Sets type, config*, exclude_* and precise_ip of attr; accepts perf's modifiers ("uk", "pp") too.
 * INVALID_EVENT for what else libpfm4 knows (period, freq, pinned, excl, cpu). NO_SUCH_EVENT names
 * the unknown part and suggests similar names. */
int pfm_event_parse(const char *string, struct perf_event_attr *attr, Refusal *why);

/* What versions of libpfm4 do differently: an event counts guests unless it has ":mh", and one that
 * is limited to a privilege level does not count the hypervisor unless it has ":h". */
void pfm_event_settle(const char *string, struct perf_event_attr *attr);

/* As event_list(), for the events that a PMU here counts: "pmu::EVENT", "pmu::EVENT:UMASK". */
int pfm_event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata);
