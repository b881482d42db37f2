/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Times in microseconds, as systemd and sd-event have them.
 */

#include <time.h>

#include "util.h"

static inline uint64_t now_usec(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

/* a + b, at most UINT64_MAX: durations come from clients. */
static inline uint64_t usec_add(uint64_t a, uint64_t b) {
        return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}
