/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The end of sets that nobody uses any more. A client can leave thousands behind, and the kernel
 * takes 10 µs and more to close one, so they end in slices; other calls are answered in between.
 * Until it ends a set counts, takes its counters and is charged to its user. Whoever needs these
 * calls counters_end_rest(). A large group is closed in slices when its set has ended
 * (counter-closing.h).
 */

#include "service/counter/counter-object.h"

void counters_end_init(Counters *counters, Turns *turns);
void counters_end_done(Counters *counters); /* after all sets: ends and closes the rest */

/* The peer has left: the sets that only it used end. */
void counters_forget_peer(Counters *counters, Peer *peer);

/* These end, whoever uses them. The youngest comes last. */
void counter_sets_end(Counters *counters, CounterSet *const *sets, size_t n);

/* Ends now those that are left. False: there were none. */
bool counters_end_rest(Counters *counters);

/* The same before these sets are opened, if what is left may take what they need. These do not end
 * here, also if they are among those. */
void counters_end_before(Counters *counters, CounterSet *const *sets, size_t n);
