/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/quota.h"

#include <glib.h>
#include <search.h>

#define ALICE 1000u
#define BOB   1001u

static void assert_charged(Quota *q, uid_t uid, QuotaGood good, uint64_t amount, QuotaCharge *ret) {
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(quota_charge(q, uid, good, amount, ret, &why), ==, 0);
        g_assert_cmpint(why.code, ==, 0);
}

static void assert_refused(Quota *q, uid_t uid, QuotaGood good, uint64_t amount) {
        QuotaCharge charge = { .amount = 77 };
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(quota_charge(q, uid, good, amount, &charge, &why), ==,
                        REFUSAL_LIMITS_EXCEEDED);
        g_assert_cmpint(why.code, ==, REFUSAL_LIMITS_EXCEEDED);
        g_assert_null(charge.user);
        g_assert_cmpuint(charge.amount, ==, 77);
}

static void test_limit_is_the_last_that_is_allowed(void) {
        QuotaCharge charges[3];
        Quota q;

        quota_init(&q);
        q.limits[QUOTA_HOLDS] = 3;
        for (size_t i = 0; i < G_N_ELEMENTS(charges); i++)
                assert_charged(&q, ALICE, QUOTA_HOLDS, 1, &charges[i]);
        assert_refused(&q, ALICE, QUOTA_HOLDS, 1);

        quota_release(&charges[1]);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 1, &charges[1]);
        for (size_t i = 0; i < G_N_ELEMENTS(charges); i++)
                quota_release(&charges[i]);
        quota_done(&q);
}

static void test_large_amounts_do_not_wrap(void) {
        QuotaCharge charge;
        Quota q;

        quota_init(&q);
        q.limits[QUOTA_DESCRIPTORS] = 10;
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 10, &charge);
        assert_refused(&q, ALICE, QUOTA_DESCRIPTORS, UINT64_MAX);
        assert_refused(&q, ALICE, QUOTA_DESCRIPTORS, UINT64_MAX - 9);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_DESCRIPTORS), ==, 10);
        quota_release(&charge);
        assert_refused(&q, ALICE, QUOTA_DESCRIPTORS, 11);
        quota_done(&q);
}

static void test_resized_is_held_to_the_limit(void) {
        QuotaCharge charge, other;
        Refusal why = REFUSAL_NULL;
        Quota q;

        quota_init(&q);
        q.limits[QUOTA_DESCRIPTORS] = 10;
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 4, &charge);
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 4, &other);
        g_assert_cmpint(quota_resize(&charge, 6, &why), ==, 0);
        g_assert_cmpint(quota_resize(&charge, 7, &why), ==, REFUSAL_LIMITS_EXCEEDED);
        g_assert_cmpint(quota_resize(&charge, UINT64_MAX, NULL), ==, REFUSAL_LIMITS_EXCEEDED);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_DESCRIPTORS), ==, 10);

        /* a smaller amount is accepted even when the limit is lower */
        q.limits[QUOTA_DESCRIPTORS] = 1;
        g_assert_cmpint(quota_resize(&charge, 0, NULL), ==, 0);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_DESCRIPTORS), ==, 4);
        quota_release(&charge);
        quota_release(&other);
        g_assert_null(q.users);
        quota_done(&q);
}

static void test_users_and_goods_are_counted_apart(void) {
        QuotaCharge alices, bobs, holds;
        Quota q;

        quota_init(&q);
        q.limits[QUOTA_COUNTERS] = 5;
        assert_charged(&q, ALICE, QUOTA_COUNTERS, 5, &alices);
        assert_charged(&q, BOB, QUOTA_COUNTERS, 4, &bobs);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 1, &holds);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_COUNTERS), ==, 5);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_HOLDS), ==, 1);
        g_assert_cmpuint(quota_used(&q, BOB, QUOTA_COUNTERS), ==, 4);
        g_assert_cmpuint(quota_used(&q, BOB, QUOTA_HOLDS), ==, 0);
        g_assert_cmpuint(quota_n_users(&q, QUOTA_COUNTERS), ==, 2);
        g_assert_cmpuint(quota_n_users(&q, QUOTA_HOLDS), ==, 1);
        g_assert_cmpuint(quota_n_users(&q, QUOTA_SAMPLERS), ==, 0);
        quota_release(&alices);
        quota_release(&bobs);
        quota_release(&holds);
        quota_done(&q);
}

static void test_root_is_counted_and_not_limited(void) {
        QuotaCharge charge;
        Quota q;

        quota_init(&q);
        q.limits[QUOTA_SAMPLERS] = 1;
        assert_charged(&q, 0, QUOTA_SAMPLERS, 1000, &charge);
        g_assert_cmpuint(quota_used(&q, 0, QUOTA_SAMPLERS), ==, 1000);
        quota_release(&charge);
        quota_done(&q);
}

/* Ended holds are kept for convenience: the limit applies to root too. */
static void test_ended_holds_are_limited_for_root_too(void) {
        QuotaCharge charge;
        Quota q;

        quota_init(&q);
        assert_charged(&q, 0, QUOTA_ENDED_HOLDS, q.limits[QUOTA_ENDED_HOLDS], &charge);
        assert_refused(&q, 0, QUOTA_ENDED_HOLDS, 1);
        quota_release(&charge);
        quota_done(&q);
}

static void test_refusal_names_good_limit_and_setting(void) {
        QuotaCharge charge;
        Quota q;

        quota_init(&q);
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++) {
                const char *setting = quota_setting(good);
                g_autofree char *limit = NULL;
                Refusal why = REFUSAL_NULL;

                q.limits[good] = 40 + (uint64_t) good;
                g_assert_cmpint(quota_charge(&q, ALICE, good, 100, &charge, &why), ==,
                                REFUSAL_LIMITS_EXCEEDED);
                limit = g_strdup_printf("limit is %d", 40 + good);
                g_assert_nonnull(strstr(why.text, limit));
                g_assert_nonnull(strstr(why.text, "1000"));
                g_assert_nonnull(strstr(why.text, "100 more"));
                g_assert_null(strstr(why.text, "null"));
                if (setting)
                        g_assert_nonnull(strstr(why.text, setting));
        }
        quota_done(&q);
}

static void test_user_is_forgotten_with_his_last_charge(void) {
        QuotaCharge first, second;
        Quota q;

        quota_init(&q);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 1, &first);
        assert_charged(&q, ALICE, QUOTA_CALLS, 0, &second);
        quota_release(&first);
        g_assert_nonnull(q.users);
        quota_release(&second);
        g_assert_null(q.users);
        q.limits[QUOTA_HOLDS] = 0;
        assert_refused(&q, ALICE, QUOTA_HOLDS, 1);
        g_assert_null(q.users);
        quota_done(&q);
}

static void test_charge_is_given_back_once(void) {
        QuotaCharge charge, other;
        Quota q;

        quota_init(&q);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 2, &other);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 3, &charge);
        quota_release(&charge);
        quota_release(&charge);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_HOLDS), ==, 2);
        quota_release(&other);
        quota_done(&q);
}

static void test_lowered_limit_is_for_what_comes_after(void) {
        QuotaCharge old, new;
        Quota q;

        quota_init(&q);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 100, &old);
        q.limits[QUOTA_HOLDS] = 10;
        assert_refused(&q, ALICE, QUOTA_HOLDS, 1);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_HOLDS), ==, 100);
        quota_release(&old);
        assert_charged(&q, ALICE, QUOTA_HOLDS, 10, &new);
        quota_release(&new);
        quota_done(&q);
}

static bool release(void *userdata, uid_t uid, QuotaGood good) {
        QuotaCharge *unused = userdata;
        bool any = unused->user && uid == ALICE && good == QUOTA_DESCRIPTORS;

        if (any)
                quota_release(unused);
        return any;
}

/* Before somebody is refused. */
static void test_what_is_unused_is_reclaimed(void) {
        QuotaCharge unused = {}, charge = {};
        Refusal why = REFUSAL_NULL;
        Quota q;

        quota_init(&q);
        q.limits[QUOTA_DESCRIPTORS] = 10;
        q.reclaim = release;
        q.userdata = &unused;
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 10, &unused);
        assert_charged(&q, BOB, QUOTA_DESCRIPTORS, 10, &charge);
        assert_refused(&q, BOB, QUOTA_DESCRIPTORS, 1);
        quota_release(&charge);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_DESCRIPTORS), ==, 10);
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 1, &charge);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_DESCRIPTORS), ==, 1);
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 9, &unused);
        g_assert_cmpint(quota_resize(&charge, 10, &why), ==, 0);
        g_assert_cmpuint(quota_used(&q, ALICE, QUOTA_DESCRIPTORS), ==, 10);
        g_assert_cmpint(quota_resize(&charge, 11, &why), ==, REFUSAL_LIMITS_EXCEEDED);
        quota_release(&charge);
        assert_charged(&q, ALICE, QUOTA_DESCRIPTORS, 10, &unused);
        assert_refused(&q, ALICE, QUOTA_DESCRIPTORS, 11);
        g_assert_null(unused.user);
        quota_done(&q);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/quota/limit-is-the-last-that-is-allowed",
                        test_limit_is_the_last_that_is_allowed);
        g_test_add_func("/quota/large-amounts-do-not-wrap", test_large_amounts_do_not_wrap);
        g_test_add_func("/quota/resized-is-held-to-the-limit", test_resized_is_held_to_the_limit);
        g_test_add_func("/quota/users-and-goods-are-counted-apart",
                        test_users_and_goods_are_counted_apart);
        g_test_add_func("/quota/root-is-counted-and-not-limited",
                        test_root_is_counted_and_not_limited);
        g_test_add_func("/quota/ended-holds-are-limited-for-root-too",
                        test_ended_holds_are_limited_for_root_too);
        g_test_add_func("/quota/refusal-names-good-limit-and-setting",
                        test_refusal_names_good_limit_and_setting);
        g_test_add_func("/quota/user-is-forgotten-with-their-last-charge",
                        test_user_is_forgotten_with_his_last_charge);
        g_test_add_func("/quota/charge-is-given-back-once", test_charge_is_given_back_once);
        g_test_add_func("/quota/lowered-limit-is-for-what-comes-after",
                        test_lowered_limit_is_for_what_comes_after);
        g_test_add_func("/quota/what-is-unused-is-reclaimed", test_what_is_unused_is_reclaimed);
        return g_test_run();
}
