/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A counter as its samplers see it: read once for all that tick at the same instant. It outlives
 * the counter, because a sampler goes on when one of its counters is closed.
 */

#include "core/reading.h"
#include "service/counter/counter-object.h"

typedef struct ReadingCache ReadingCache;

struct ReadingCache {
        unsigned n_ref;
        uint64_t id;      /* of the counter */
        Counter *counter; /* NULL: it is closed */
        CounterListener listener;
        uint64_t instant; /* of the last read */
        Reading reading;  /* at that instant */
};

/* A reference to the cache of c, which is created if there is none. -ENOMEM. */
int reading_cache_new(Counter *c, ReadingCache **ret);
ReadingCache *reading_cache_unref(ReadingCache *s);

/* The same for a counter that was closed before the service was restarted. */
int reading_cache_new_closed(uint64_t id, const Reading *last, ReadingCache **ret);

/* Updates the reading, unless that was done for this instant (counters_now()). A closed counter
 * keeps its last reading; its quality is not-counted. */
void reading_cache_read(ReadingCache *s, uint64_t instant);
