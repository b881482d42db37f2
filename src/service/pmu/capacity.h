/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How many events each PMU counts at once: measured (capacity_measure()), and told to the ledger.
 *
 * Measuring breakpoints makes the kernel wait for an RCU grace period of several milliseconds,
 * which would delay the call that starts the service. So the measurement runs after the first calls
 * are answered, or when it is needed. It always precedes the service's own counters, which would be
 * missing from the result.
 */

#include "service/util/context.h"

#define CAPACITIES_DELAY_USEC (100 * USEC_PER_MSEC)

/* What an earlier run has measured stays valid. If there was one, the rest is measured at once. */
int capacities_new(Context *context, Capacities **ret);
Capacities *capacities_free(Capacities *c);

/* Measures what is not known yet and can be measured; a core PMU that has no CPU online is measured
 * once it has. -ENOMEM: some of that is still unknown. */
int capacities_need(Capacities *c);

/* Also tells the ledger anew what the kernel keeps: its watchdog may have been turned on or off.
 * Call ledger_next() afterwards, also if it fails. -ENOMEM. */
int capacities_refresh(Capacities *c);
