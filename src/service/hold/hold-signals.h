/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a hold announces: on the bus, to callers of Wait, and in the journal.
 */

#include "service/hold/hold-object.h"

void hold_signal_added(Hold *h);   /* InterfacesAdded */
void hold_signal_removed(Hold *h); /* InterfacesRemoved */
void hold_signal_state(const Hold *h);
void hold_signal_granted(const Hold *h); /* State, Confirmed and GrantTimestamp, then HoldGranted */
void hold_signal_confirmed(const Hold *h); /* Confirmed alone */
void hold_signal_ended(const Hold *h);     /* HoldEnded */
void hold_signal_yielding(Holds *holds);   /* Manager.Yielding */

/* Answers a Wait on a hold that is granted or has ended. */
void hold_signal_waiter(const Hold *h, sd_bus_message *m);

void hold_log_granted(const Hold *h);
void hold_log_ended(const Hold *h);
void hold_signal_degraded(const char *what);

/* REFUSAL_BUSY names the holds that block h in the ledger. */
int hold_refuse_busy(const Hold *h, Refusal *why);
int hold_refuse_number(const Hold *h, Refusal *why); /* more counters than there are */
