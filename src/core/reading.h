/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a counter has counted, and how reliable that is.
 */

#include "core/util.h"

typedef struct Count Count;
typedef struct Reading Reading;

/* The numbers are those of <perfalloc/sample.h>: never renumber. */
typedef enum Quality {
        QUALITY_EXACT = 0,       /* on the PMU all the time that it was enabled */
        QUALITY_SCALED = 1,      /* multiplexed: value is raw, estimate is scaled */
        QUALITY_NOT_COUNTED = 2, /* never on the PMU, or not counting now (yielded, in error) */
        _QUALITY_MAX,
} Quality;

/* What one event has counted on one CPU, or of one thread. */
struct Count {
        uint64_t value;
        uint64_t enabled; /* ns */
        uint64_t running; /* ns */
};

/* What all of them have counted together. */
struct Reading {
        uint64_t value, enabled, running; /* sums */
        uint64_t estimate;                /* sum of the estimates of each */
        Quality quality;                  /* the lowest */
};

#define COUNT_NULL   ((Count){})
#define READING_NULL ((Reading){})

/* Sums wrap as the kernel's 64-bit counts do; differences of sums stay right. */
static inline void count_add(Count *c, const Count *other) {
        c->value += other->value;
        c->enabled += other->enabled;
        c->running += other->running;
}

static inline void count_subtract(Count *c, const Count *other) {
        c->value -= other->value;
        c->enabled -= other->enabled;
        c->running -= other->running;
}

static inline Quality count_quality(const Count *c) {
        if (c->running == 0)
                return QUALITY_NOT_COUNTED;
        return c->running < c->enabled ? QUALITY_SCALED : QUALITY_EXACT;
}

/* What would have been counted in all the time that it was enabled; UINT64_MAX where that is more.
 * It does not grow steadily: it falls where less happens than in the time that it was scaled by. */
static inline uint64_t count_estimate(const Count *c) {
        unsigned __int128 n;

        if (count_quality(c) != QUALITY_SCALED)
                return c->value;
        n = (unsigned __int128) c->value * c->enabled / c->running;
        return n > UINT64_MAX ? UINT64_MAX : (uint64_t) n;
}

/* A count that was never enabled is no part: that of a thread which has not run yet. */
static inline void reading_add(Reading *r, const Count *part) {
        r->value += part->value;
        r->enabled += part->enabled;
        r->running += part->running;
        r->estimate += count_estimate(part);
        if (part->enabled > 0)
                r->quality = MAX(r->quality, count_quality(part));
}

static inline const char *quality_name(Quality q) {
        static const char *const names[_QUALITY_MAX] = { "exact", "scaled", "not-counted" };
        return names[q];
}
