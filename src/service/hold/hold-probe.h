/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measuring for a hold: whether what it was promised is free.
 *
 * Holds of one scope are measured one after the other, in the ledger's order: two probes at once
 * would measure each other.
 */

#include "service/hold/hold-object.h"

/* Enters a granted hold into, or takes it out of, the slots that it covers: a later shared hold of
 * all counters takes over what was measured for an earlier one. */
void hold_cover(Hold *h, bool granted);

int hold_probe_begin(Hold *h);         /* -ENOMEM, -EMFILE: hold_stop_measuring() is due */
bool hold_probe_look(Hold *h);         /* false: it looks again, at the hold's next step */
bool hold_probes_agree(const Hold *h); /* all that was promised was found free */

/* In a hold of a number of counters more monitors are told to go where the probes found too few
 * counters: false when there are none. */
bool hold_ask_for_more(Hold *h);

/* A CPU has come online: granted holds that cover it are not confirmed until hold_probe_joined()
 * has measured it, at their next step. */
void holds_cpu_joined(Holds *holds, unsigned cpu);
void hold_probe_joined(Hold *h);
