/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What active holds are promised on a slot, and what must be free there for all of it to be true.
 *
 * A hold of N is promised N general counters. A hold of all is promised everything that no other
 * hold was promised by number: the other general counters and every fixed one, at once; several
 * such holds share it. Promises add up, so the whole must be free where any hold has all, and the
 * sum where there are numbers alone; but for what the holders have opened themselves.
 *
 * What there is to promise is what the ledger was told (ledger_set_capacity(), ledger_set_fixed()).
 */

#include "core/ledger.h"
#include "core/shape.h"

Shape promise_of(const Ledger *l, const LedgerHold *h, unsigned pmu, unsigned cpu);

/* opened: what holders have open there, of each hold no more than it was promised. */
Shape promise_must_be_free(const Ledger *l, unsigned pmu, unsigned cpu, Shape opened);
