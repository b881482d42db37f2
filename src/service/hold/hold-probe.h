/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measuring for a hold: whether what it is promised is free (perf/pmu/probe.h).
 *
 * A hold of N counters is promised N general ones on each CPU, a hold of all counters everything
 * that the PMU has and that is not promised to another hold by number, its fixed counters included.
 * What the kernel keeps is never promised. Promises add up: what other holders were promised and
 * have not opened yet has to be free as well (hold-claims.h).
 *
 * Holds of one scope are measured one after the other, in the ledger's order: two probes at once
 * would measure each other.
 */

#include "perf/process/users.h"
#include "service/hold/hold-object.h"

/* On those CPUs of the scope; NULL: on all. -ENOMEM, -EMFILE: hold_stop_measuring() is due. */
int hold_probe_begin(Hold *h, const CpuSet *cpus);

/* Whether another hold of the same slots is being measured. */
bool hold_probes_beside(const Hold *h);

/* 1: done. 0: it looks again, at the hold's next step. -ENOMEM, -EMFILE, -ENFILE: it is done, and
 * nothing is known. */
int hold_probe_look(Hold *h);

/* Of a probe that is done: all was found free; or something was found taken, on a PMU that can be
 * measured. */
bool hold_probe_confirms(const Hold *h);
bool hold_probe_lacks(const Hold *h);
void hold_set_lack(Hold *h);

/* Names the service's own counters that have some of what is missing. */
void hold_add_standing(Hold *h, bool holders);

/* Notes what the probe found missing: monitors leave that alone. */
void hold_add_missing(Hold *h);

/* In a hold of a number of counters more monitors are told to go where the probe found too few
 * counters: false when there are none. */
bool hold_ask_for_more(Hold *h);

/* What is missing may be what holders have open, by what a scan has found. True: that explains all
 * of it, and a new probe measures whether the rest is free; else the looks want no more than what
 * it does not explain. */
bool hold_probe_explain(Hold *h, const User *users, size_t n_users);

/* The hold is about to be granted: what was confirmed is its promise. */
void hold_set_promised(Hold *h);
