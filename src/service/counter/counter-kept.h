/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which counters are stored: KeptDescriptors= limits the descriptors of all users together.
 * Persistent counters and monitors are always stored.
 *
 * Who comes first is stored first. At the limit, a user whose counters do not exceed an equal share
 * takes the place of the latest ones of the user who has most stored.
 */

#include "service/counter/counter-object.h"

/* Whether the set is to be stored, which is counted. Sets of other users may leave the store. */
bool counter_set_may_be_kept(CounterSet *set);

/* Takes the set out of the store: it ends with this process. */
void counter_set_unkeep(CounterSet *set);

/* Sets how many descriptors of the set count against KeptDescriptors=. by_hold: none do, because
 * its user holds counters. */
void counter_set_count_kept(CounterSet *set, uint64_t limited, bool by_hold);

/* Sets how many counters of the set end with this process, which is logged, also by the next run.
 */
void counter_set_count_unkept(CounterSet *set, size_t n);
void counters_save_unkept(Counters *counters);
