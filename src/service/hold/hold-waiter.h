/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls of Wait that are not answered yet. A hold has any number of them, and answers all of them
 * by its end.
 */

#include "service/bus/peer.h"
#include "service/hold/hold-object.h"

/* Answers m when the hold is granted or has ended, which may be at once.
 * REFUSAL_LIMITS_EXCEEDED. */
int hold_wait(Hold *h, Peer *peer, sd_bus_message *m, Refusal *why);

/* The hold is granted or has ended. */
void hold_answer_waiters(Hold *h);
