/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pmu.Probe: how many counters are free on each CPU, measured now. One CPU after the other, with a
 * look at the loop in between: there may be hundreds.
 */

#include "service/service.h"

#define PROBE_CALLS_BURST    8u
#define PROBE_CALLS_PER_USEC (100 * USEC_PER_MSEC) /* one more is allowed every so often */

int probe_call_begin(Service *s, const Pmu *pmu, sd_bus_message *m, Refusal *why);

/* The peer has left: its calls are forgotten. */
void probe_calls_forget_peer(Service *s, Peer *peer);
void probe_calls_done(Service *s);
