/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Groups of sets that have ended. One may have thousands of events, of many threads: it is closed
 * in slices then (counter-end.h). Breakpoints are closed at once, as a hold does not wait for them.
 */

#include "service/counter/counter-object.h"

/* The group of a set that has ended. It is charged to its user until it is closed. Takes both over.
 */
void counters_close_group(Counters *counters, Group *group, QuotaCharge *charge);

/* Closes some more events. There has to be a group in counters->closing. */
void counters_close_some(Counters *counters);
