/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How much may be sent to a user in the course of time, whether he reads it or not.
 *
 * The bus keeps what a client does not read, and does not tell us; when it keeps 127 MiB of ours it
 * takes no more from us, for anybody. Answers come one for one call; what comes by itself is to
 * come slowly.
 */

#include <sys/types.h>

#include "core/util.h"

typedef struct Allowance Allowance;
typedef struct Allowances Allowances;

#define ALLOWANCES_MAX                                                                             \
        64u /* users that are known; he who got something last the longest ago goes */

struct Allowance {
        uid_t uid;
        uint64_t used;  /* bytes, at as_of */
        uint64_t as_of; /* us, any clock that runs on */
};

/* All zero at first. */
struct Allowances {
        Allowance users[ALLOWANCES_MAX];
};

/* Whether the user may get so many bytes now: never more than per_sec in a burst, nor in a second
 * afterwards. */
bool allowance_take(Allowances *a, uid_t uid, uint64_t now_usec, uint64_t bytes, uint64_t per_sec);
