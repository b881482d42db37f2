/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/rate-limit.h"

#include <glib.h>

#define BEGIN (UINT64_C(1000) * USEC_PER_SEC)

static void test_not_more_than_the_limit_at_once(void) {
        RateLimit l = { .per_sec = 1000 };

        g_assert_true(rate_limit_take(&l, 1, BEGIN, 600, 1000));
        g_assert_true(rate_limit_take(&l, 1, BEGIN, 400, 1000));
        g_assert_false(rate_limit_take(&l, 1, BEGIN, 1, 1000));
        g_assert_false(rate_limit_take(&l, 2, BEGIN, 1001, 1000));
        g_assert_false(rate_limit_take(&l, 2, BEGIN, UINT64_MAX, 1000));
}

static void test_it_comes_back_with_time(void) {
        RateLimit l = { .per_sec = 1000 };

        g_assert_true(rate_limit_take(&l, 1, BEGIN, 1000, 1000));
        g_assert_false(rate_limit_take(&l, 1, BEGIN + USEC_PER_SEC / 2, 501, 1000));
        g_assert_true(rate_limit_take(&l, 1, BEGIN + USEC_PER_SEC / 2, 500, 1000));
        g_assert_true(rate_limit_take(&l, 1, BEGIN + 1000 * USEC_PER_SEC, 1000, 1000));
        g_assert_false(rate_limit_take(&l, 1, BEGIN + 1000 * USEC_PER_SEC, 1, 1000));
}

static void test_users_have_their_own(void) {
        RateLimit l = { .per_sec = 1000 };

        for (uid_t uid = 0; uid < RATE_LIMIT_KEYS; uid++)
                g_assert_true(rate_limit_take(&l, uid, BEGIN + uid, 1000, 1000));
        for (uid_t uid = 0; uid < RATE_LIMIT_KEYS; uid++)
                g_assert_false(rate_limit_take(&l, uid, BEGIN + 100, 1000, 1000));
        /* one too many: the first is forgotten */
        g_assert_true(rate_limit_take(&l, 1000, BEGIN + 200, 1000, 1000));
        g_assert_false(rate_limit_take(&l, 1, BEGIN + 200, 1000, 1000));
}

static void test_more_than_the_limit_can_be_added(void) {
        RateLimit l = { .per_sec = 250000 }; /* of microseconds */

        g_assert_cmpuint(rate_limit_add(&l, 1, BEGIN, USEC_PER_SEC), ==, USEC_PER_SEC);
        g_assert_cmpuint(rate_limit_add(&l, 1, BEGIN, USEC_PER_SEC), ==, 2 * USEC_PER_SEC);
        g_assert_cmpuint(rate_limit_add(&l, 1, BEGIN + 4 * USEC_PER_SEC, 0), ==, USEC_PER_SEC);
        g_assert_cmpuint(rate_limit_add(&l, 1, BEGIN + 9 * USEC_PER_SEC, 7), ==, 7);
}

static void test_no_limit_wraps(void) {
        RateLimit l = { .per_sec = 1000 };

        l.per_sec = 1000000000;
        g_assert_true(rate_limit_take(&l, 1, UINT64_MAX - 1, 1000000000, 1000000000));
        g_assert_false(rate_limit_take(&l, 1, UINT64_MAX, 1000000000, 1000000000));
        l.per_sec = 0;
        g_assert_false(rate_limit_take(&l, 1, 5, 1, 0)); /* a clock that went back, and no limit */
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rate-limit/not-more-than-the-limit-at-once",
                        test_not_more_than_the_limit_at_once);
        g_test_add_func("/rate-limit/it-comes-back-with-time", test_it_comes_back_with_time);
        g_test_add_func("/rate-limit/users-have-their-own", test_users_have_their_own);
        g_test_add_func("/rate-limit/more-than-the-limit-can-be-added",
                        test_more_than_the_limit_can_be_added);
        g_test_add_func("/rate-limit/no-limit-wraps", test_no_limit_wraps);
        return g_test_run();
}
