/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measures whether the counters that a hold was promised are free.
 *
 * Holds of one scope are measured one after another, in the ledger's order: two probes at once
 * would measure each other.
 */

#include "service/hold/hold-object.h"

/* Enters a granted hold into the slots that it covers, or removes it. Later shared holds of all
 * counters take over what was measured for an earlier one. */
void hold_cover(Hold *h, bool granted);

int hold_probe_begin(Hold *h);         /* -ENOMEM, -EMFILE: call hold_stop_measuring() */
bool hold_probe_look(Hold *h);         /* false: call it again at the hold's next step */
bool hold_probes_agree(const Hold *h); /* all that was promised is free */

/* For a hold of N counters: more yielders are asked to yield where the probes found too few
 * counters. False: there are none. */
bool hold_ask_for_more(Hold *h);

/* A CPU has come online. Granted holds that cover it are not confirmed until hold_probe_joined()
 * has measured it, at their next step. */
void holds_cpu_joined(Holds *holds, unsigned cpu);
void hold_probe_joined(Hold *h);
