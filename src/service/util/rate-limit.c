/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rate-limit.h"

uint64_t rate_use_now(RateUse *use, uint64_t now_usec, uint64_t per_sec) {
        uint64_t elapsed = now_usec > use->as_of_usec ? now_usec - use->as_of_usec : 0;
        uint64_t forgotten = elapsed / USEC_PER_SEC * per_sec;

        forgotten += elapsed % USEC_PER_SEC * per_sec / USEC_PER_SEC;
        use->used -= MIN(use->used, forgotten);
        use->as_of_usec = now_usec;
        return use->used;
}

/* The bucket of the key, or in its place the least recently used one. */
static RateUse *rate_limit_get(RateLimit *l, uint64_t key) {
        RateUse *oldest = &l->uses[0];

        for (size_t i = 0; i < RATE_LIMIT_KEYS; i++) {
                if (l->uses[i].as_of_usec > 0 && l->uses[i].key == key)
                        return &l->uses[i];
                if (l->uses[i].as_of_usec < oldest->as_of_usec)
                        oldest = &l->uses[i];
        }
        *oldest = (RateUse){ .key = key };
        return oldest;
}

uint64_t rate_limit_add(RateLimit *l, uint64_t key, uint64_t now_usec, uint64_t amount) {
        RateUse *use = rate_limit_get(l, key);

        use->used = rate_use_now(use, now_usec, l->per_sec) + amount;
        return use->used;
}

bool rate_limit_take(RateLimit *l, uint64_t key, uint64_t now_usec, uint64_t amount,
                     uint64_t burst) {
        RateUse *use = rate_limit_get(l, key);
        uint64_t used = rate_use_now(use, now_usec, l->per_sec);

        if (amount > burst || used > burst - amount)
                return false;
        use->used += amount;
        return true;
}
