/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The text about a hold, an object of org.perfalloc1.Hold (org.perfalloc1(5)).
 *
 * The caller frees a text; NULL: no memory.
 */

#include "client/object.h"

/* Whether a is in b's way, or ahead of it in the queue, as far as properties tell: it came earlier,
 * has not ended, and has a PMU and a CPU in common with it. */
bool hold_precedes(const Object *a, const Object *b);

/* "all counters of cpu on CPUs 0-3" */
char *hold_words_scope(const Object *o);

/* "pid 4711 of alice (all counters of cpu on CPUs 0-3, exclusive, granted)", and of an unattended
 * one "hold 7 of alice (tag job-12: all counters...)" */
char *hold_words_holder(const Object *o);

/* The obstacles; "" for none. */
char *hold_words_obstacles(const Object *o);

/* The message about a granted hold: what it has, and whether the counters were measured to be free.
 * An object without a State is one that could not be read. */
char *hold_words_grant(const Object *o, bool confirmed, uint64_t latency_usec);
