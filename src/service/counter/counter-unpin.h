/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters of CPUs are pinned as long as their user holds the counters: pinned for longer, they
 * would keep what everybody else is to have. Those that clients have descriptors of stay pinned,
 * because nobody but the client can close these.
 */

#include "service/counter/counter-object.h"

void counters_unpin_init(Counters *counters, Turns *turns);
void counters_unpin_done(Counters *counters);

void counter_set_note_pinned(CounterSet *set); /* of a new set */
void counter_set_drop_pinned(CounterSet *set);

/* A hold may have ended: in slices, what no hold of its user covers is opened anew. */
void counters_unpin_soon(Counters *counters);
