/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The times of a hold: its expiry, and the end of its present step. A step is the wait in the
 * queue, the time given to yielders, or the pause before the probe looks again.
 */

#include "service/hold/hold-object.h"

#define HOLD_WARNING_USEC (60 * USEC_PER_SEC)

/* Sets the expiry by the request. */
void hold_set_end(Hold *h);

/* The handlers get the hold as userdata. expired is called HOLD_WARNING_USEC before the expiry, or
 * at once when less is left, and again at the expiry: it calls hold_warn() first. */
int hold_add_timers(Hold *h, sd_event_time_handler_t stepped, sd_event_time_handler_t expired);

/* Warns the client. False: that was done before, and the hold expires now. */
bool hold_warn(Hold *h);

/* Lets it expire that long after now, and tells so. UINT64_MAX: never. */
void hold_extend(Hold *h, uint64_t lifetime_usec);

void hold_step_at(Hold *h, uint64_t usec); /* CLOCK_MONOTONIC; UINT64_MAX: never */
void hold_await_queue(Hold *h);

/* The time given to yielders starts now; */
void hold_set_deadline(Hold *h); /* alone, */
void hold_await_yield(Hold *h);  /* and with the step's timer */
