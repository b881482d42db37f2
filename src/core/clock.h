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

#define CLOCK_TRIES      8u
#define CLOCK_CLOSE_USEC 10u /* of two readings that nothing came between */

/* The time of CLOCK_REALTIME at a time of CLOCK_MONOTONIC, as the two are to each other now. Of
 * some readings the closest counts: this thread may be preempted between the two clocks. */
static inline uint64_t usec_realtime_of(uint64_t monotonic_usec) {
        uint64_t apart = 0, closest = UINT64_MAX;

        for (unsigned i = 0; i < CLOCK_TRIES && closest > CLOCK_CLOSE_USEC; i++) {
                uint64_t begun = now_usec(CLOCK_MONOTONIC), real = now_usec(CLOCK_REALTIME),
                         took = now_usec(CLOCK_MONOTONIC) - begun;

                if (took < closest) {
                        closest = took;
                        apart = real - begun;
                }
        }
        return monotonic_usec + apart;
}
