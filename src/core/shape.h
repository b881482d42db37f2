/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters of one PMU on one CPU, as an amount: so many general ones, and which of those that serve
 * a single event (fixed ones). What a PMU has, what the kernel keeps, what a hold is promised, what
 * is free and what a monitor takes are all said in it.
 */

#include "core/util.h"

typedef struct Shape Shape;
typedef struct CounterUse CounterUse;

#define SHAPE_FIXED_MAX 8u
#define SHAPE_NO_SPILL  UINT8_MAX /* no other counter serves it: more than any PMU has */

struct Shape {
        unsigned general;
        uint32_t fixed; /* a bit for each of the PMU's fixed counters, in its own order */
};

#define SHAPE_NULL ((Shape){})

/* What events that are counted at once take. An event that has a fixed counter takes that one, or,
 * where it is taken, general ones. */
struct CounterUse {
        Shape takes;
        /* general counters instead of a fixed one that is taken, or SHAPE_NO_SPILL */
        uint8_t spill[SHAPE_FIXED_MAX];
};

static inline bool shape_is_empty(Shape s) {
        return s.general == 0 && s.fixed == 0;
}

static inline unsigned shape_size(Shape s) {
        return s.general + (unsigned) __builtin_popcount(s.fixed);
}

static inline bool shape_equal(Shape a, Shape b) {
        return a.general == b.general && a.fixed == b.fixed;
}

static inline bool shape_contains(Shape whole, Shape part) {
        return part.general <= whole.general && !(part.fixed & ~whole.fixed);
}

/* What both have. */
static inline Shape shape_common(Shape a, Shape b) {
        return (Shape){ .general = MIN(a.general, b.general), .fixed = a.fixed & b.fixed };
}

/* What is left of whole; nothing of what it has not. */
static inline Shape shape_without(Shape whole, Shape part) {
        return (Shape){ .general = whole.general - MIN(whole.general, part.general),
                        .fixed = whole.fixed & ~part.fixed };
}

/* How many general counters the use takes where these fixed ones are taken already. */
unsigned counter_use_general(const CounterUse *use, uint32_t taken);

/* The use of both at once. */
void counter_use_add(CounterUse *use, const CounterUse *more);

/* As counter_use_add(), of what is open: events that no counter is left for take none. So it may be
 * less than what is taken, and never more. */
void counter_use_add_open(CounterUse *use, const CounterUse *more);
