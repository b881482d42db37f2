/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rate-limit.h"

/* The user's, or that of him who has waited longest. */
static Allowance *allowance_get(Allowances *a, uid_t uid) {
        Allowance *oldest = &a->users[0];

        for (size_t i = 0; i < ALLOWANCES_MAX; i++) {
                if (a->users[i].as_of > 0 && a->users[i].uid == uid)
                        return &a->users[i];
                if (a->users[i].as_of < oldest->as_of)
                        oldest = &a->users[i];
        }
        *oldest = (Allowance){ .uid = uid };
        return oldest;
}

bool allowance_take(Allowances *a, uid_t uid, uint64_t now_usec, uint64_t bytes, uint64_t per_sec) {
        Allowance *user = allowance_get(a, uid);
        uint64_t elapsed = now_usec > user->as_of ? now_usec - user->as_of : 0;

        /* nothing wraps: limits are at most 10^9 */
        elapsed = MIN(elapsed, (uint64_t) USEC_PER_SEC);
        user->used -= MIN(user->used, elapsed * per_sec / USEC_PER_SEC);
        user->as_of = now_usec;
        if (bytes > per_sec || user->used > per_sec - bytes)
                return false;
        user->used += bytes;
        return true;
}
