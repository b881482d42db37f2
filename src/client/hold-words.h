/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is said of a hold, an object of org.perfalloc1.Hold (org.perfalloc1(5)).
 *
 * Words are the caller's to free; NULL: no memory for them.
 */

#include "client/object.h"

/* Whether a stands in b's way, or before it in the queue, as far as can be seen from outside: it
 * came earlier, has not ended, and has a PMU and a CPU in common with it. */
bool hold_precedes(const Object *a, const Object *b);

/* "all counters of cpu on CPUs 0-3" */
char *hold_words_scope(const Object *o);

/* "pid 4711 of alice (all counters of cpu on CPUs 0-3, exclusive, granted)" */
char *hold_words_holder(const Object *o);

/* Who is in the way; "" for nobody. */
char *hold_words_obstacles(const Object *o);

/* Of a granted hold: what it has, and whether the counters were measured to be free. An object
 * without a State is one that could not be read. */
char *hold_words_grant(const Object *o, bool confirmed, uint64_t latency_usec);
