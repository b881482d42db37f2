/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The times of a hold: when it expires, and when its present step is over, which is its wait in the
 * queue, what monitors may take, or the pause until the probe's next look.
 */

#include "service/hold/hold-object.h"

/* When it expires, from its request. */
void hold_set_end(Hold *h);

/* The handlers get the hold as userdata. */
int hold_add_timers(Hold *h, sd_event_time_handler_t stepped, sd_event_time_handler_t expired);

void hold_step_at(Hold *h, uint64_t usec); /* CLOCK_MONOTONIC; UINT64_MAX: never */
void hold_await_turn(Hold *h);

/* Monitors may take their time from now on. */
void hold_set_deadline(Hold *h); /* it is counted from now, */
void hold_give_time(Hold *h);    /* and is waited for */
