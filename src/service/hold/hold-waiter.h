/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls of Wait that are not answered yet: a hold has any number of them, and has answered them all
 * when it ends.
 */

#include "service/bus/peer.h"
#include "service/hold/hold-object.h"

/* Answers m when the hold is granted or has ended; at once when it is. Refusals: LIMITS_EXCEEDED.
 */
int hold_wait(Hold *h, Peer *peer, sd_bus_message *m, Refusal *why);

/* It is granted or has ended. */
void hold_answer_waiters(Hold *h);
