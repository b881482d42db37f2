/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The times of a hold: when it expires, and when its present step is over, which is its wait in the
 * queue, what monitors may take, or the pause until the probe's next look.
 */

#include "service/hold/hold.h"

/* When it expires, from its request. */
void hold_set_end(Hold *h);

int hold_add_timers(Hold *h);

void hold_step_at(Hold *h, uint64_t usec); /* CLOCK_MONOTONIC; UINT64_MAX: never */
void hold_await_turn(Hold *h);

/* Monitors may take their time from now on. */
void hold_set_deadline(Hold *h); /* it is counted from now, */
void hold_give_time(Hold *h);    /* and is waited for */
