/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What each user has of the service's goods, and the limits on it.
 *
 * Everything that a client can make is charged to its uid before anything else is done for it, and
 * released when it goes. Root is counted, but not limited (except for ended holds).
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct Quota Quota;
typedef struct QuotaUser QuotaUser;
typedef struct QuotaCharge QuotaCharge;

typedef enum QuotaGood {
        QUOTA_HOLDS,
        QUOTA_COUNTERS,
        QUOTA_DESCRIPTORS,
        QUOTA_SAMPLERS,
        QUOTA_MONITORS,
        QUOTA_BROKERS,
        QUOTA_CALLS,  /* calls that wait for a reply */
        QUOTA_QUEUED, /* calls that wait to be handled */
        QUOTA_QUEUED_BYTES,
        QUOTA_SIGNAL_BYTES, /* of samplers, per second; not charged: service/util/rate-limit.h */
        QUOTA_ENDED_HOLDS,  /* that can still be read; no setting */
        QUOTA_KEPT,         /* descriptors that are kept over a restart; limited for all together */
        _QUOTA_GOOD_MAX,
} QuotaGood;

/* Releases what the user does not use any more, if there is any. It may not charge anything. */
typedef bool (*QuotaReclaim)(void *userdata, uid_t uid, QuotaGood good);

struct Quota {
        uint64_t limits[_QUOTA_GOOD_MAX]; /* per user; a change applies to later charges */
        void *users;                      /* tree of QuotaUser by uid */
        QuotaReclaim reclaim;             /* NULL, or asked before a limit is said to be exceeded */
        void *userdata;                   /* its */
};

/* Exists while anything is charged to the user. */
struct QuotaUser {
        uid_t uid;
        Quota *quota;
        unsigned n_ref;
        uint64_t used[_QUOTA_GOOD_MAX];
};

/* Something charged; all zero: nothing. Plain data, moved by assignment. */
struct QuotaCharge {
        QuotaUser *user;
        QuotaGood good;
        uint64_t amount;
};

void quota_init(Quota *q); /* with the default limits */
void quota_done(Quota *q); /* nothing may be charged at that time */

/* REFUSAL_LIMITS_EXCEEDED names the good, the limit and its setting. */
int quota_charge(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret,
                 Refusal *why);
void quota_release(QuotaCharge *c);

/* Ignores the limit: for what an earlier run of the service left. -ENOMEM. */
int quota_charge_anyway(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret);

/* Whether it could be charged now, with the same refusal: asked before polkit is, so that a user at
 * the limit causes no polkit check. */
int quota_check(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, Refusal *why);

/* Changes the amount of a charge; a smaller one is never refused. */
int quota_resize(QuotaCharge *c, uint64_t amount, Refusal *why);

/* The setting in perfallocd.conf: "HoldsPerUser". */
const char *quota_setting(QuotaGood good);

uint64_t quota_used(Quota *q, uid_t uid, QuotaGood good);

/* How many users have some of it. */
size_t quota_n_users(const Quota *q, QuotaGood good);
