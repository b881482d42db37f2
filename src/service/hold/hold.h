/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Holds: queued -> yielding -> granted -> ended.
 *
 * A hold that may not wait and has somebody in its way never comes into being. Every other one goes
 * through all states; the order of what is told of it is a promise (org.perfalloc1(5)):
 * InterfacesAdded, the reply to Hold, State granted, HoldGranted, the replies to Wait; at the end
 * State and Result, the replies to Wait, HoldEnded.
 */

#include "service/bus/peer.h"
#include "service/hold/hold-object.h"

/* The hooks and their userdata must be valid from the first hold on. -ENOMEM. */
int holds_init(Holds *holds, Context *context, const HoldsHooks *hooks, void *userdata);

/* Frees everything without telling anybody, for the end of the service. */
void holds_done(Holds *holds);

/* Takes the request over, also on failure, and puts the hold into the ledger. Monitors have been
 * asked to give way, nobody has been told: the caller announces it and then calls hold_begin().
 * ret_lease is the write end, for the client; NULL for an unattended hold. Refusals: BUSY naming
 * who is in the way, LIMITS_EXCEEDED. */
int hold_new(Holds *holds, const Peer *peer, HoldRequest *request, Hold **ret, int *ret_lease,
             Refusal *why);
void hold_begin(Hold *h);

/* Gives it up; allowed in every state. */
void hold_end(Hold *h, HoldResult result);

/* Somebody who was asked to yield has answered, or left. */
void holds_advance(Holds *holds);

/* Tells monitors what is demanded of them now, on account of cause (may be NULL). */
void holds_apply(Holds *holds, const Hold *cause, uint64_t deadline_usec);

/* ---- for hold-restore.c ---- */

int hold_watch_lease(Hold *h, int lease); /* takes it over on success */
int hold_watch_time(Hold *h);
int hold_enter_ledger_again(Hold *h); /* -EBADMSG: it does not fit, which it did before */
