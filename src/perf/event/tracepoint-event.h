/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracepoints by name: "sched:sched_switch", with modifiers behind a second colon. Their numbers
 * are in tracefs, which usually root alone may read.
 */

#include "perf/event/event.h"

/* -ENOENT: it is none that tracefs tells of. *ret_path is where its number would be, to be freed;
 * NULL: the string has not the form of one. */
int tracepoint_event_parse(const PmuTable *pmus, const char *string, Event *e, char **ret_path,
                           Refusal *why);

/* Why the number could not be read; 0: this machine has no such tracepoint. */
int tracepoint_event_explain(const char *string, const char *path, Refusal *why);
