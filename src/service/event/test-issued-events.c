/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/event/issued-events.h"

#include <glib.h>

static void test_events_are_one_users(void) {
        IssuedEvents h;

        issued_events_init(&h);
        g_assert_false(issued_events_has(&h, 1000, 1));
        g_assert_cmpint(issued_events_add(&h, 1000, 1), ==, 0);
        g_assert_cmpint(issued_events_add(&h, 1001, 2), ==, 0);
        g_assert_true(issued_events_has(&h, 1000, 1));
        g_assert_true(issued_events_has(&h, 1001, 2));
        g_assert_false(issued_events_has(&h, 1000, 2));
        g_assert_false(issued_events_has(&h, 1001, 1));
        g_assert_false(issued_events_has(&h, 0, 1));
        issued_events_done(&h);
}

static void test_latest_are_known(void) {
        const uint64_t n = 3 * ISSUED_EVENTS_EVENTS_MAX + 5;
        IssuedEvents h;

        issued_events_init(&h);
        for (uint64_t id = 1; id <= n; id++) {
                g_assert_cmpint(issued_events_add(&h, 1000, id), ==, 0);
                g_assert_true(issued_events_has(&h, 1000, id));
                g_assert_cmpint(issued_events_has(&h, 1000, 1), ==, id <= ISSUED_EVENTS_EVENTS_MAX);
        }
        for (uint64_t id = 1; id <= n; id++)
                g_assert_cmpint(issued_events_has(&h, 1000, id), ==,
                                id > n - ISSUED_EVENTS_EVENTS_MAX);
        issued_events_done(&h);
}

static void test_users_who_had_any_last_are_known(void) {
        IssuedEvents h;

        issued_events_init(&h);
        g_assert_cmpint(issued_events_add(&h, 1, 1), ==, 0);
        for (uid_t uid = 2; uid <= 2 * ISSUED_EVENTS_USERS_MAX; uid++) {
                g_assert_cmpint(issued_events_add(&h, uid, uid), ==, 0);
                /* who comes again is not forgotten */
                g_assert_cmpint(issued_events_add(&h, 1, 1), ==, 0);
        }
        g_assert_cmpuint(h.n_users, ==, ISSUED_EVENTS_USERS_MAX);
        g_assert_true(issued_events_has(&h, 1, 1));
        g_assert_false(issued_events_has(&h, 2, 2));
        g_assert_true(
                issued_events_has(&h, 2 * ISSUED_EVENTS_USERS_MAX, 2 * ISSUED_EVENTS_USERS_MAX));
        issued_events_done(&h);
}

static void test_many_at_once_are_known(void) {
        enum { N = ISSUED_EVENTS_EVENTS_MAX + 10, AT_ONCE = 300 };
        uint64_t ids[AT_ONCE];
        uint64_t n = 0;
        IssuedEvents h;

        issued_events_init(&h);
        while (n < N) {
                for (size_t i = 0; i < AT_ONCE; i++)
                        ids[i] = ++n;
                g_assert_cmpint(issued_events_add_all(&h, 1000, ids, AT_ONCE), ==, 0);
        }
        for (uint64_t id = 1; id <= n; id++)
                g_assert_cmpint(issued_events_has(&h, 1000, id), ==,
                                id > n - ISSUED_EVENTS_EVENTS_MAX);
        issued_events_done(&h);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/issued-events/events-are-one-users", test_events_are_one_users);
        g_test_add_func("/issued-events/the-latest-are-known", test_latest_are_known);
        g_test_add_func("/issued-events/many-at-once-are-known", test_many_at_once_are_known);
        g_test_add_func("/issued-events/users-who-had-any-last-are-known",
                        test_users_who_had_any_last_are_known);
        return g_test_run();
}
