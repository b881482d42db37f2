/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "quota.h"

#include <inttypes.h>
#include <search.h>

static const struct {
        const char *setting;
        const char *words;
        uint64_t limit;
} goods[_QUOTA_GOOD_MAX] = {
        [QUOTA_HOLDS] = { "HoldsPerUser", "holds", 1024 },
        [QUOTA_COUNTERS] = { "CountersPerUser", "counters", 4096 },
        [QUOTA_DESCRIPTORS] = { "DescriptorsPerUser", "perf event descriptors", 16384 },
        [QUOTA_SAMPLERS] = { "SamplersPerUser", "samplers", 64 },
        [QUOTA_MONITORS] = { "MonitorsPerUser", "registered monitors", 64 },
        [QUOTA_BROKERS] = { "BrokersPerUser", "brokers", 64 },
        [QUOTA_CALLS] = { "PendingCallsPerUser", "calls that wait for an answer", 1024 },
        [QUOTA_QUEUED] = { "QueuedCallsPerUser", "calls that wait for their turn", 1024 },
        [QUOTA_QUEUED_BYTES] = { "QueuedBytesPerUser", "bytes of calls that wait for their turn",
                                 4 * 1024 * 1024 },
        [QUOTA_SIGNAL_BYTES] = { "SignalBytesPerUser", "bytes of signals", 1024 * 1024 },
        [QUOTA_ENDED_HOLDS] = { NULL, "ended holds", 64 },
        [QUOTA_KEPT] = { NULL, "kept descriptors", UINT64_MAX },
};

static int compare_users(const void *a, const void *b) {
        const QuotaUser *x = a, *y = b;

        return x->uid < y->uid ? -1 : x->uid > y->uid;
}

void quota_init(Quota *q) {
        *q = (Quota){};
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++)
                q->limits[good] = goods[good].limit;
}

void quota_done(Quota *q) {
        tdestroy(q->users, free);
        q->users = NULL;
}

static QuotaUser *quota_find(Quota *q, uid_t uid) {
        QuotaUser key = { .uid = uid };
        QuotaUser **found = tfind(&key, &q->users, compare_users);

        return found ? *found : NULL;
}

static QuotaUser *quota_user(Quota *q, uid_t uid) {
        QuotaUser *user = quota_find(q, uid);

        if (user)
                return user;
        user = malloc(sizeof(QuotaUser));
        if (!user)
                return NULL;
        *user = (QuotaUser){ .uid = uid, .quota = q };
        if (!tsearch(user, &q->users, compare_users)) {
                free(user);
                return NULL;
        }
        return user;
}

static void quota_forget(QuotaUser *user) {
        if (user->n_ref > 0)
                return;
        tdelete(user, &user->quota->users, compare_users);
        free(user);
}

static bool quota_is_free(const QuotaUser *user, QuotaGood good, uint64_t amount) {
        uint64_t limit = user->quota->limits[good];

        if (user->uid == 0 && good != QUOTA_ENDED_HOLDS)
                return true;
        return amount <= limit && user->used[good] <= limit - amount;
}

/* Now, or when what the user does not use any more is released. The user stays. */
static bool quota_can_take(QuotaUser *user, QuotaGood good, uint64_t amount) {
        Quota *q = user->quota;
        bool can = quota_is_free(user, good, amount);

        if (can || !q->reclaim)
                return can;
        user->n_ref++;
        can = q->reclaim(q->userdata, user->uid, good) && quota_is_free(user, good, amount);
        user->n_ref--;
        return can;
}

static int quota_refuse(const QuotaUser *user, QuotaGood good, uint64_t amount, Refusal *why) {
        const char *setting = goods[good].setting;

        return refuse(why, REFUSAL_LIMITS_EXCEEDED,
                      "user %u has %" PRIu64 " %s and asks for %" PRIu64
                      " more; the limit is %" PRIu64 "%s%s%s",
                      (unsigned) user->uid, user->used[good], goods[good].words, amount,
                      user->quota->limits[good], setting ? " (" : "", setting ?: "",
                      setting ? "= in perfallocd.conf)" : "");
}

static void quota_take(QuotaUser *user, QuotaGood good, uint64_t amount, QuotaCharge *ret) {
        user->used[good] += amount;
        user->n_ref++;
        *ret = (QuotaCharge){ .user = user, .good = good, .amount = amount };
}

int quota_charge_anyway(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret) {
        QuotaUser *user = quota_user(q, uid);

        if (!user)
                return -ENOMEM;
        quota_take(user, good, amount, ret);
        return 0;
}

int quota_charge(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret,
                 Refusal *why) {
        QuotaUser *user = quota_user(q, uid);

        if (!user)
                return -ENOMEM;
        if (!quota_can_take(user, good, amount)) {
                int r = quota_refuse(user, good, amount, why);

                quota_forget(user);
                return r;
        }
        quota_take(user, good, amount, ret);
        return 0;
}

int quota_resize(QuotaCharge *c, uint64_t amount, Refusal *why) {
        QuotaUser *user = c->user;

        if (amount > c->amount && !quota_can_take(user, c->good, amount - c->amount))
                return quota_refuse(user, c->good, amount - c->amount, why);
        user->used[c->good] += amount - c->amount;
        c->amount = amount;
        return 0;
}

int quota_check(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, Refusal *why) {
        QuotaCharge charge = {};
        int r = quota_charge(q, uid, good, amount, &charge, why);

        if (r == 0)
                quota_release(&charge);
        return r;
}

void quota_release(QuotaCharge *c) {
        QuotaUser *user = c->user;

        if (!user)
                return;
        user->used[c->good] -= c->amount;
        user->n_ref--;
        quota_forget(user);
        *c = (QuotaCharge){};
}

const char *quota_setting(QuotaGood good) {
        return goods[good].setting;
}

uint64_t quota_used(Quota *q, uid_t uid, QuotaGood good) {
        const QuotaUser *user = quota_find(q, uid);

        return user ? user->used[good] : 0;
}

typedef struct QuotaCount {
        QuotaGood good;
        size_t n;
} QuotaCount;

static void quota_count(const void *node, VISIT visit, void *userdata) {
        const QuotaUser *user = *(QuotaUser *const *) node;
        QuotaCount *count = userdata;

        if (visit == preorder || visit == leaf)
                count->n += user->used[count->good] > 0;
}

size_t quota_n_users(const Quota *q, QuotaGood good) {
        QuotaCount count = { .good = good };

        twalk_r(q->users, quota_count, &count);
        return count.n;
}
