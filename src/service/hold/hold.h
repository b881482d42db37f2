/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Holds: queued -> yielding -> granted -> ended.
 *
 * A hold that may not wait and is blocked is never created. Every other hold goes through all
 * states. The order of its signals is a promise (org.perfalloc1(5)): InterfacesAdded, the reply to
 * Hold, State granted, HoldGranted, the replies to Wait; at the end State and Result, the replies
 * to Wait, HoldEnded.
 */

#include "service/bus/peer.h"
#include "service/hold/hold-object.h"

/* The hooks and their userdata must be valid from the first hold on. -ENOMEM. */
int holds_init(Holds *holds, Context *context, const HoldsHooks *hooks, void *userdata);

/* Frees everything without signals, for the end of the service. */
void holds_done(Holds *holds);

/* Takes over the request, also on failure, and puts the hold into the ledger. Yielders have been
 * asked to yield, but nothing is announced: the caller announces the hold and then calls
 * hold_begin(). ret_lease is the write end, for the client; NULL for an unattended hold. Refusals:
 * BUSY naming the holds in the way, LIMITS_EXCEEDED. */
int hold_new(Holds *holds, const Peer *peer, HoldRequest *request, Hold **ret, int *ret_lease,
             Refusal *why);
void hold_begin(Hold *h);

/* Ends it, in any state. */
void hold_end(Hold *h, HoldResult result);

/* A yielder that was asked has answered or left. */
void holds_advance(Holds *holds);

/* The one that gives yielders less time; a may be NULL. */
Hold *hold_more_urgent(Hold *a, Hold *b);

/* Tells yielders what they have to yield now. cause is the hold that demands it, or NULL. */
void holds_apply(Holds *holds, const Hold *cause, uint64_t deadline_usec);

/* ---- for hold-restore.c ---- */

int hold_watch_lease(Hold *h, int lease); /* takes over lease on success */
int hold_watch_time(Hold *h);
int hold_watch_tie(Hold *h);
int hold_enter_ledger_again(Hold *h);
