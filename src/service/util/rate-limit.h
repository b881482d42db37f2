/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How much of something a user has had recently: a leaky bucket for each of them. Amounts and
 * clocks are the caller's; what was used is forgotten at a steady rate.
 */

#include <sys/types.h>

#include "core/util.h"

typedef struct RateLimit RateLimit;
typedef struct RateUse RateUse;

#define RATE_LIMIT_KEYS                                                                            \
        64u /* of which a RateLimit knows the use: the least recent one is forgotten */

struct RateUse {
        uint64_t key;
        uint64_t used;       /* at as_of_usec */
        uint64_t as_of_usec; /* 0: never used */
};

/* All zero but for per_sec at first. */
struct RateLimit {
        uint64_t per_sec; /* that is forgotten in a second, at most 10^9 */
        RateUse uses[RATE_LIMIT_KEYS];
};

/* What is left of the use at that time, after per_sec has been forgotten every second. */
uint64_t rate_use_now(RateUse *use, uint64_t now_usec, uint64_t per_sec);

/* Adds to what the key has used, in most cases the key of a user: returns the sum. */
uint64_t rate_limit_add(RateLimit *l, uint64_t key, uint64_t now_usec, uint64_t amount);

/* Adds the amount unless that makes more than burst; whether it did. */
bool rate_limit_take(RateLimit *l, uint64_t key, uint64_t now_usec, uint64_t amount,
                     uint64_t burst);
