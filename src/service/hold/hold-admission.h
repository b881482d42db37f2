/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The middle of a hold's life: from admission by the ledger to the grant. Monitors have given way
 * (or not in time), the probe measures, whoever is in the way is looked for.
 *
 * Holds of one scope are measured one after the other, in the ledger's order: two probes at once
 * would measure each other.
 */

#include "service/hold/hold.h"

/* Calls off what is under way. */
void hold_admission_stop(Hold *h);

/* Enters a granted hold into, or takes it out of, the slots that it covers: a later shared hold of
 * all counters takes over what was measured for an earlier one. */
void hold_cover(Hold *h, bool granted);

/* One look before the hold is told of: when all is free already, that is when it was granted. */
void hold_look_ahead(Hold *h);

/* Measures the CPUs that came online in a granted hold. */
void hold_admission_joined(Hold *h);

void hold_grant(Hold *h, bool confirmed); /* hold.c */
