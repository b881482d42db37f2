/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The queue: holds wait in order, and holds that overlap do not overtake. */

#include "bus-util.h"

#define LONG UINT64_C(60000000)

static unsigned position(Client *c, const char *path) {
        return (unsigned) client_get_number(c, path, HOLD, "QueuePosition", 'u');
}

static char *take(Client *c, int *lease, const char *mode, uint64_t wait_usec) {
        return hold_take(c, lease, "a{sv}", 3, BREAKPOINTS, "mode", "s", mode, "wait_usec", "t",
                         wait_usec);
}

static void test_order(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;

        first = take(root, &a, "exclusive", 0);
        second = take(alice, &b, "exclusive", LONG);
        third = take(root, &c, "exclusive", LONG);
        g_assert_cmpuint(position(alice, second), ==, 1);
        g_assert_cmpuint(position(root, third), ==, 2);
        a = close_fd(a);
        g_assert_true(hold_wait(alice, second));
        g_assert_cmpuint(position(alice, second), ==, 0);
        g_assert_true(hold_is(root, third, "queued"));
        g_assert_cmpuint(position(root, third), ==, 1);
        b = close_fd(b);
        g_assert_true(hold_wait(root, third));
}

static void test_no_overtaking(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;

        first = take(root, &a, "shared", 0);
        second = take(alice, &b, "exclusive", LONG);
        client_refused(root, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "overtaking", 1,
                       BREAKPOINTS);
        third = take(root, &c, "shared", LONG);
        g_assert_cmpuint(position(root, third), ==, 2);
        a = close_fd(a);
        g_assert_true(hold_wait(alice, second));
        g_assert_true(hold_is(root, third, "queued"));
        b = close_fd(b);
        g_assert_true(hold_wait(root, third));
}

static void test_leaving(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;

        first = take(root, &a, "shared", 0);
        second = take(root, &b, "exclusive", LONG);
        third = take(root, &c, "shared", LONG);
        b = close_fd(b);
        /* the one in its way has gone, and the granted one is shared as well */
        g_assert_true(hold_wait(root, third));
        g_assert_true(hold_is(root, first, "granted"));
        g_assert_true(client_reads(root, second, HOLD, "Result", "lease-closed"));
}

static void test_shared_together(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;

        first = take(root, &a, "exclusive", 0);
        second = take(root, &b, "shared", LONG);
        third = take(root, &c, "shared", LONG);
        a = close_fd(a);
        g_assert_true(hold_wait(root, second));
        g_assert_true(hold_wait(root, third));
}

static void test_elsewhere(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;

        first = take(root, &a, "exclusive", 0);
        second = take(root, &b, "exclusive", LONG);
        third = hold_take(root, &c, "a{sv}", 2, "pmus", "as", 1, "software", "mode", "s",
                          "exclusive");
        g_assert_true(hold_wait(root, third));
}

static void test_timed_out(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        _cleanup_close_ int a = -1, b = -1;
        gint64 asked;

        first = take(root, &a, "exclusive", 0);
        asked = g_get_monotonic_time();
        second = take(alice, &b, "exclusive", 200 * USEC_PER_MSEC);
        client_refused(alice, PERFALLOC_ERROR_TIMED_OUT, second, HOLD, "Wait", NULL);
        g_assert_cmpint(g_get_monotonic_time() - asked, >=, 200 * (gint64) USEC_PER_MSEC);
        g_assert_true(hold_is(alice, second, "ended"));
        g_assert_true(client_reads(alice, second, HOLD, "Result", "timed-out"));
        client_refused(alice, PERFALLOC_ERROR_TIMED_OUT, second, HOLD, "Wait", NULL);
}

static void test_lifetime_in_queue(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        _cleanup_close_ int a = -1;

        first = take(root, &a, "exclusive", 0);
        second = hold_take_unattended(root, 100 * USEC_PER_MSEC, "a{sv}", 2, BREAKPOINTS,
                                      "wait_usec", "t", LONG);
        client_refused(root, PERFALLOC_ERROR_ENDED, second, HOLD, "Wait", NULL);
        g_assert_true(client_reads(root, second, HOLD, "Result", "expired"));
}

static void test_endless_times(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        _cleanup_close_ int a = -1;

        first = take(root, &a, "exclusive", 0);
        second = hold_take_unattended(root, UINT64_MAX, "a{sv}", 3, BREAKPOINTS, "wait_usec", "t",
                                      UINT64_MAX, "yield_usec", "t", UINT64_MAX);
        g_assert_true(hold_is(root, second, "queued"));
        g_assert_cmpuint(client_get_number(root, second, HOLD, "ExpireTimestamp", 't'), ==, 0);
        a = close_fd(a);
        g_assert_true(hold_wait(root, second));
        hold_release(root, second);
}

static void test_wait_is_no_block(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        _cleanup_close_ int a = -1, b = -1;
        uint64_t cookie;

        first = take(root, &a, "exclusive", 0);
        second = take(root, &b, "exclusive", LONG);
        cookie = client_send(root, second, HOLD, "Wait", NULL);
        for (int i = 0; i < 20; i++)
                g_assert_true(hold_is(root, second, "queued"));
        g_assert_false(client_has_answer(root, cookie));
        a = close_fd(a);
        await(client_has_answer(root, cookie));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/queue/who-came-first-is-first", test_order);
        g_test_add_func("/queue/waiting-exclusive-is-not-overtaken", test_no_overtaking);
        g_test_add_func("/queue/who-leaves-lets-the-next-in", test_leaving);
        g_test_add_func("/queue/shared-ones-come-in-together", test_shared_together);
        g_test_add_func("/queue/other-counters-have-another-queue", test_elsewhere);
        g_test_add_func("/queue/waiting-ends-after-wait-usec", test_timed_out);
        g_test_add_func("/queue/lifetime-ends-waiting-too", test_lifetime_in_queue);
        g_test_add_func("/queue/times-at-the-end-of-64-bits-are-endless", test_endless_times);
        g_test_add_func("/queue/who-waits-can-be-asked", test_wait_is_no_block);
        return g_test_run();
}
