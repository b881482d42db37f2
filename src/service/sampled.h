/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A counter as its samplers see it: read once for all that tick at the same instant. It outlives
 * the counter, for a sampler goes on when one of its counters is closed.
 */

#include "core/reading.h"
#include "service/service.h"

typedef struct Sampled Sampled;

struct Sampled {
        unsigned n_ref;
        uint64_t id;      /* of the counter */
        Counter *counter; /* NULL when it has been closed */
        uint64_t instant; /* when it was read last */
        Reading reading;  /* then */
        Quality quality;
};

/* A reference to what stands for c, made when c has none; -ENOMEM. */
int sampled_new(Counter *c, Sampled **ret);
Sampled *sampled_unref(Sampled *s);

/* Likewise, for a counter that was closed before the service was restarted. */
int sampled_new_closed(uint64_t id, const Reading *last, Sampled **ret);

/* Brings reading and quality up to date, unless that was done for this instant already. Instants
 * are numbers that grow. What was closed keeps its last reading, and is unmeasured. */
void sampled_read(Sampled *s, uint64_t instant);

/* c is being closed. */
void sampled_forget_counter(Counter *c);
