/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A counter as its samplers see it: read once for all that tick at the same instant. It outlives
 * the counter, for a sampler goes on when one of its counters is closed.
 */

#include "core/reading.h"
#include "service/counter/counter-object.h"

typedef struct ReadingCache ReadingCache;

struct ReadingCache {
        unsigned n_ref;
        uint64_t id;      /* of the counter */
        Counter *counter; /* NULL when it has been closed */
        CounterListener listener;
        uint64_t instant; /* when it was read last */
        Reading reading;  /* then */
        Quality quality;
};

/* A reference to what stands for c, made when c has none; -ENOMEM. */
int reading_cache_new(Counter *c, ReadingCache **ret);
ReadingCache *reading_cache_unref(ReadingCache *s);

/* Likewise, for a counter that was closed before the service was restarted. */
int reading_cache_new_closed(uint64_t id, const Reading *last, ReadingCache **ret);

/* Brings reading and quality up to date, unless that was done for this instant already. Instants
 * are numbers that grow. What was closed keeps its last reading, and is unmeasured. */
void reading_cache_read(ReadingCache *s, uint64_t instant);
