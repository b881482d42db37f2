/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Groups of sets that have ended. A group may have thousands of events, of many threads: then it is
 * stopped at once, so that it takes no counters (but for a thread that is being created then, see
 * perf/group/gate.h), and closed in slices (counter-end.h).
 *
 * Breakpoints are closed at once, because they take a slot until then. So are groups of which
 * clients have descriptors, because they may go on with them, and monitors.
 */

#include "service/counter/counter-object.h"

/* Takes the group from a set that ends, if it is one that is closed in slices. The descriptors stay
 * charged to the user until then. */
void counter_set_close_later(CounterSet *set);

/* Closes some more events. There has to be a group in counters->closing. */
void counters_close_some(Counters *counters);

/* Closes all that the user is charged for. False: there was nothing. */
bool counters_close_of(Counters *counters, uid_t uid);
