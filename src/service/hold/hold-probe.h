/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measuring for a hold: whether what it is promised is free (perf/pmu/probe.h).
 *
 * A hold of N counters is promised N general ones on each CPU, a hold of all counters everything
 * that the PMU has and that is not promised to another hold by number, its fixed counters included.
 * What the kernel keeps is never promised. Promises add up: what other holds were promised by
 * number has to be free as well, for they may not have opened it yet.
 *
 * Holds of one scope are measured one after the other, in the ledger's order: two probes at once
 * would measure each other.
 */

#include "service/hold/hold-object.h"

/* -ENOMEM, -EMFILE: hold_stop_measuring() is due. */
int hold_probe_begin(Hold *h);

/* False: it looks again, at the hold's next step. */
bool hold_probe_look(Hold *h);

/* Of a probe that is done: all was found free; or something was found taken, on a PMU that can be
 * measured; or the scope has a PMU that cannot. */
bool hold_probe_confirms(const Hold *h);
bool hold_probe_lacks(const Hold *h);
bool hold_probe_is_unknown(const Hold *h);

/* In a hold of a number of counters more monitors are told to go where the probe found too few
 * counters: false when there are none. */
bool hold_ask_for_more(Hold *h);

/* What is missing is in the hands of holders. Whether that leaves what this hold is promised; from
 * then on it is measured against what was found free. */
bool hold_probe_accept(Hold *h);

/* The hold is granted: what was confirmed is its promise. */
void hold_set_promised(Hold *h);

/* A CPU has come online: granted holds that cover it are not confirmed until hold_probe_joined()
 * has measured it, at their next step. */
void holds_cpu_joined(Holds *holds, unsigned cpu);
void hold_probe_joined(Hold *h);
