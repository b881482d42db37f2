/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perf_event_open(2)'s errors in words: what was asked, why it failed on this machine, what to do.
 */

#include "perf/event/event.h"

/* error is positive. tid and cpu as in perf_event_open(2). Returns the refusal, or -error for what
 * is not an outcome of the request (ENOMEM). */
int explain_open(int error, const Event *event, pid_t tid, int cpu, Refusal *why);
