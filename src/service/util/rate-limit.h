/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How much of a resource each user has used recently: a leaky bucket per key. The caller chooses
 * units and clock. Use decays at a constant rate.
 */

#include <sys/types.h>

#include "core/util.h"

typedef struct RateLimit RateLimit;
typedef struct RateUse RateUse;

#define RATE_LIMIT_KEYS 64u /* the least recently used one is replaced */

struct RateUse {
        uint64_t key;
        uint64_t used;       /* at as_of_usec */
        uint64_t as_of_usec; /* 0: never used */
};

/* All zero at first, except per_sec. */
struct RateLimit {
        uint64_t per_sec; /* how much decays in a second, at most 10^9 */
        RateUse uses[RATE_LIMIT_KEYS];
};

/* The use that is left at that time, after decay. */
uint64_t rate_use_now(RateUse *use, uint64_t now_usec, uint64_t per_sec);

/* Adds to the use of the key, usually a uid. Returns the sum. */
uint64_t rate_limit_add(RateLimit *l, uint64_t key, uint64_t now_usec, uint64_t amount);

/* Adds the amount unless the sum would exceed burst. Returns whether it did. */
bool rate_limit_take(RateLimit *l, uint64_t key, uint64_t now_usec, uint64_t amount,
                     uint64_t burst);
