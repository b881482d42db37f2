/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/rate-limit.h"

#include <glib.h>

#define BEGIN (UINT64_C(1000) * USEC_PER_SEC)

static void test_not_more_than_the_limit_at_once(void) {
        Allowances a = {};

        g_assert_true(allowance_take(&a, 1, BEGIN, 600, 1000));
        g_assert_true(allowance_take(&a, 1, BEGIN, 400, 1000));
        g_assert_false(allowance_take(&a, 1, BEGIN, 1, 1000));
        g_assert_false(allowance_take(&a, 2, BEGIN, 1001, 1000));
        g_assert_false(allowance_take(&a, 2, BEGIN, UINT64_MAX, 1000));
}

static void test_it_comes_back_with_time(void) {
        Allowances a = {};

        g_assert_true(allowance_take(&a, 1, BEGIN, 1000, 1000));
        g_assert_false(allowance_take(&a, 1, BEGIN + USEC_PER_SEC / 2, 501, 1000));
        g_assert_true(allowance_take(&a, 1, BEGIN + USEC_PER_SEC / 2, 500, 1000));
        g_assert_true(allowance_take(&a, 1, BEGIN + 1000 * USEC_PER_SEC, 1000, 1000));
        g_assert_false(allowance_take(&a, 1, BEGIN + 1000 * USEC_PER_SEC, 1, 1000));
}

static void test_users_have_their_own(void) {
        Allowances a = {};

        for (uid_t uid = 0; uid < ALLOWANCES_MAX; uid++)
                g_assert_true(allowance_take(&a, uid, BEGIN + uid, 1000, 1000));
        for (uid_t uid = 0; uid < ALLOWANCES_MAX; uid++)
                g_assert_false(allowance_take(&a, uid, BEGIN + 100, 1000, 1000));
        /* one too many: the first is forgotten */
        g_assert_true(allowance_take(&a, 1000, BEGIN + 200, 1000, 1000));
        g_assert_false(allowance_take(&a, 1, BEGIN + 200, 1000, 1000));
}

static void test_no_limit_wraps(void) {
        Allowances a = {};

        g_assert_true(allowance_take(&a, 1, UINT64_MAX - 1, 1000000000, 1000000000));
        g_assert_false(allowance_take(&a, 1, UINT64_MAX, 1000000000, 1000000000));
        g_assert_false(allowance_take(&a, 1, 5, 1, 0)); /* a clock that went back, and no limit */
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/allowance/not-more-than-the-limit-at-once",
                        test_not_more_than_the_limit_at_once);
        g_test_add_func("/allowance/it-comes-back-with-time", test_it_comes_back_with_time);
        g_test_add_func("/allowance/users-have-their-own", test_users_have_their_own);
        g_test_add_func("/allowance/no-limit-wraps", test_no_limit_wraps);
        return g_test_run();
}
