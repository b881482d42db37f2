/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The time of a clock of clock_gettime(2), as one number.
 */

#include <time.h>

#include "core/util.h"

static inline uint64_t now_nsec(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

static inline uint64_t now_usec(clockid_t clock) {
        return now_nsec(clock) / NSEC_PER_USEC;
}

/* UINT64_MAX, which stands for never, instead of an overflow. */
static inline uint64_t usec_add(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
