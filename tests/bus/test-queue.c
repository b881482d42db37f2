/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The queue: holds wait in order, and holds that overlap do not overtake. */

#include "bus-util.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#define CPU_PMU  "/org/perfalloc1/pmu/cpu", PERFALLOC_PMU_INTERFACE
#define SYSCTL   "/proc/sys/kernel/nmi_watchdog"
#define WATCHDOG "/run/nmi_watchdog"

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

/* What the service reads of the sysctl. */
static void watchdog_set(const char *value) {
        _cleanup_close_ int fd = open(WATCHDOG, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        g_assert_cmpint(write(fd, value, 1), ==, 1);
}

static bool watchdog_takes_general(Client *c) {
        g_autoptr(sd_bus_message) m = NULL;
        g_auto(GStrv) fixed = NULL;

        if (!client_finds(c, CPU_PMU) || client_get_number(c, CPU_PMU, "Counters", 'u') < 2)
                return false;
        m = client_get_variant(c, CPU_PMU, "Fixed", "as");
        bus_check(sd_bus_message_read_strv(m, &fixed), "Fixed");
        return !fixed || !g_strv_contains((const char *const *) fixed, "cycles");
}

static char *take_cpu(Client *c, int *lease, uint32_t counters) {
        return hold_take(c, lease, "a{sv}", 4, "pmus", "as", 1, "cpu", "counters", "u", counters,
                         "wait_usec", "t", LONG, "best_effort", "b", true);
}

/* It is noticed when the next hold comes, of whatever counters. */
static void test_kernel_gives_back(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *other = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;
        uint32_t n;

        watchdog_set("0");
        if (!watchdog_takes_general(root) || mount(WATCHDOG, SYSCTL, NULL, MS_BIND, NULL) < 0) {
                g_test_skip("not on this machine: a counter of a core PMU that the watchdog takes");
                return;
        }
        rig("service-stop", NULL);
        n = (uint32_t) client_get_number(root, CPU_PMU, "Counters", 'u');
        watchdog_set("1");
        first = take_cpu(root, &a, n - 1);
        second = take_cpu(root, &b, 1);
        g_assert_true(hold_is(root, second, "queued"));
        watchdog_set("0");
        other = hold_take(root, &c, "a{sv}", 1, BREAKPOINTS);
        await(hold_is(root, second, "granted"));
        g_assert_cmpint(umount(SYSCTL), ==, 0);
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
        g_test_add_func("/queue/what-the-kernel-gives-back-lets-the-next-in",
                        test_kernel_gives_back);
        return g_test_run();
}
