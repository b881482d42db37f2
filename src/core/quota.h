/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What each user has of the service's goods, and how much he may have.
 *
 * Whatever a client can make is charged to its uid when it is made, before anything else is done
 * for it, and given back when it goes. Root is counted, never limited (but for ended holds).
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
        QUOTA_CALLS,  /* calls that wait for an answer of ours */
        QUOTA_QUEUED, /* calls that wait for their turn to be handled */
        QUOTA_QUEUED_BYTES,
        QUOTA_SIGNAL_BYTES, /* of samplers, a second: is not charged, see service/util/rate-limit.h
                             */
        QUOTA_ENDED_HOLDS,  /* that can still be read; no setting */
        _QUOTA_GOOD_MAX,
} QuotaGood;

struct Quota {
        uint64_t limits[_QUOTA_GOOD_MAX]; /* a user; changes hold for what is charged afterwards */
        void *users;                      /* tree of QuotaUser by uid */
};

/* A user is known while anything is charged to him. */
struct QuotaUser {
        uid_t uid;
        Quota *quota;
        unsigned n_ref;
        uint64_t used[_QUOTA_GOOD_MAX];
};

/* Something charged; all zero: nothing is. Plain data, moved by assignment. */
struct QuotaCharge {
        QuotaUser *user;
        QuotaGood good;
        uint64_t amount;
};

void quota_init(Quota *q); /* with the default limits */
void quota_done(Quota *q); /* nothing may be charged any more */

/* REFUSAL_LIMITS_EXCEEDED names the good, the limit and its setting. */
int quota_charge(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret,
                 Refusal *why);
void quota_release(QuotaCharge *c);

/* What was there before this process is charged whatever the limit is now. -ENOMEM. */
int quota_charge_anyway(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret);

/* Whether it could be charged now, with the same refusal: to be asked before polkit is, so that who
 * is at his limit costs nobody's time. */
int quota_check(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, Refusal *why);

/* What was charged becomes another amount; less of it is never refused. */
int quota_resize(QuotaCharge *c, uint64_t amount, Refusal *why);

/* The setting in perfallocd.conf: "HoldsPerUser". */
const char *quota_setting(QuotaGood good);

uint64_t quota_used(Quota *q, uid_t uid, QuotaGood good);
