/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perf_event_open(2)'s errors as refusals: what was asked, why it failed on this machine, what to
 * do.
 */

#include "perf/event/event.h"

/* error is positive; tid and cpu are as in perf_event_open(2). The refusal, or -ENOMEM. */
int explain_open(int error, const Event *event, pid_t tid, int cpu, Refusal *why);
