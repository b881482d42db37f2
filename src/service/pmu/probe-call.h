/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pmu.Probe: how many counters are free on each CPU, measured now. One CPU is measured after
 * another, and the loop runs in between: there may be hundreds.
 *
 * A measurement takes other people's breakpoints for a moment, and the loop stands still in it: the
 * kernel waits for an RCU grace period, some milliseconds, when it has not given out any for a
 * while (percpu_down_write() in kernel/events/hw_breakpoint.c). So each user has a pace, and all
 * users together have one. A user who exceeds either waits. A measurement is for all calls that
 * came before it began, of users who are within their pace, and each user pays once. So nobody can
 * use up what others may have, and a flood of calls is answered at the caller's pace.
 */

#include "service/bus/object-node.h"
#include "service/util/context.h"

typedef struct Probing Probing;

/* A burst of measurements, and the interval between further ones; of one user, and of all. */
#define PROBES_USER_BURST 8u
#define PROBES_USER_USEC  (500 * USEC_PER_MSEC)
#define PROBES_BURST      8u
#define PROBES_USEC       (100 * USEC_PER_MSEC)

int probe_call_begin(Probing *p, const Pmu *pmu, sd_bus_message *m, Refusal *why);

int probing_new(Context *context, Probing **ret);
Probing *probing_free(Probing *p); /* all calls have ended */

Context *probing_context(const Probing *p);
ObjectNode *probing_node(Probing *p); /* of the Pmu interface */
