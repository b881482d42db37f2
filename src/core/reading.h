/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a counter has counted, and how reliable that is.
 */

#include "core/util.h"

typedef struct Reading Reading;

/* The numbers are those of <perfalloc/sample.h>: never renumber. */
typedef enum Quality {
        QUALITY_EXACT = 0,      /* on the PMU all the time that it was enabled */
        QUALITY_SCALED = 1,     /* multiplexed: value is raw, scale by enabled/running */
        QUALITY_UNMEASURED = 2, /* never on the PMU, or not counting now (yielded, in error) */
        _QUALITY_MAX,
} Quality;

struct Reading {
        uint64_t value;
        uint64_t enabled; /* ns */
        uint64_t running; /* ns */
};

#define READING_NULL ((Reading){})

/* Sums wrap as the kernel's 64-bit counts do; differences of sums stay right. */
static inline void reading_add(Reading *r, const Reading *other) {
        r->value += other->value;
        r->enabled += other->enabled;
        r->running += other->running;
}

static inline void reading_subtract(Reading *r, const Reading *other) {
        r->value -= other->value;
        r->enabled -= other->enabled;
        r->running -= other->running;
}

static inline Quality reading_quality(const Reading *r) {
        if (r->running == 0)
                return QUALITY_UNMEASURED;
        return r->running < r->enabled ? QUALITY_SCALED : QUALITY_EXACT;
}

static inline const char *quality_name(Quality q) {
        static const char *const names[_QUALITY_MAX] = { "exact", "scaled", "unmeasured" };
        return names[q];
}
