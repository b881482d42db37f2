/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How many events each PMU counts at once, measured (capacity_measure()) and told to the ledger.
 *
 * Measuring breakpoints makes the kernel wait for an RCU grace period, several milliseconds, which
 * whoever starts the service by calling it would wait for as well. So it is done when the first
 * calls are answered, or when it is needed, whichever is first; and always before the service opens
 * counters of its own, which would be missing in what is measured.
 */

#include "service/daemon/service.h"

#define CAPACITIES_DELAY_USEC (100 * USEC_PER_MSEC)

/* What an earlier run has measured holds on. Where there was one, the rest is measured at once. */
int capacities_init(Service *s);

/* From here on they are known, as far as they can be. -ENOMEM: not yet. */
int capacities_need(Service *s);
