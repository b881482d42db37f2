/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A program that does not yield is found and named, and never ignored. */

#include "foreigner.h"

static void test_obstructed(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) foreigner = foreigner_new();
        g_autofree char *path = NULL, *pid = g_strdup_printf("pid %d", (int) foreigner->pid);
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, path, HOLD, "Wait", NULL);
        g_assert_nonnull(strstr(alice->refusal, pid));
        g_assert_true(hold_is(alice, path, "ended"));
        g_assert_true(client_reads(alice, path, HOLD, "Result", "obstructed"));
        g_assert_true(hold_names(alice, path, foreigner->pid));
        g_assert_cmpuint(
                service_said(
                        "obstructed: 3 of 4 counters of breakpoint free on CPU 0; counters in"),
                ==, 1);
        /* for as long as it can be read */
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, path, HOLD, "Wait", NULL);
}

/* The obstacle counts for what the service finds, though nothing was ever measured without it. */
static void test_before_the_service(void) {
        g_autofree char *path = NULL;
        g_autoptr(Actor) foreigner = NULL;
        g_autoptr(Client) alice = NULL;
        _cleanup_close_ int lease = -1;

        rig("service-stop", NULL);
        foreigner = foreigner_new();
        alice = client_new("alice");
        path = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, path, HOLD, "Wait", NULL);
        g_assert_true(hold_names(alice, path, foreigner->pid));
}

static void test_monitors_resume(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL, *monitor = monitor_open(root, 0, 0);
        g_autoptr(Actor) foreigner G_GNUC_UNUSED = foreigner_new();
        _cleanup_close_ int lease = -1;

        watched_write(0, 10);
        path = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        await(hold_is(alice, path, "ended"));
        await(counter_is(root, monitor, "counting"));
        watched_write(0, 3);
        g_assert_cmpuint(counter_value(root, monitor), ==, hits(13));
}

static void test_best_effort(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) foreigner = foreigner_new();
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, path));
        g_assert_true(hold_is(alice, path, "granted"));
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Confirmed", 'b'), ==, 0);
        g_assert_true(hold_names(alice, path, foreigner->pid));
}

static void test_gone(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) foreigner = foreigner_new();
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        g_assert_cmpint(actor_join(foreigner), ==, 0);
        path = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, path));
}

static void test_other_cpu(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL, *event = watched_event(0), *counter = NULL;
        _cleanup_close_ int lease = -1;

        if (n_cpus() < 2) {
                g_test_skip("one CPU only");
                return;
        }
        counter = counter_open(root, event, "a{sv}", 2, "scope", "s", "cpu", "cpus", "s", "1");
        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "0");
        g_assert_true(hold_wait(alice, path));
}

/* Nobody can tell what of such a PMU is free: nothing is confirmed, and nobody is blamed. */
static void test_unmeasured(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        if (!g_file_test("/sys/bus/event_source/devices/msr", G_FILE_TEST_EXISTS)) {
                g_test_skip("there is no msr PMU");
                return;
        }
        hold = hold_take(alice, &lease, "a{sv}", 1, "pmus", "as", 1, "msr");
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, hold, HOLD, "Wait", NULL);
        g_assert_nonnull(strstr(alice->refusal, "cannot be measured"));
        g_assert_null(strstr(alice->refusal, "in use"));
        g_assert_cmpuint(
                service_said("obstructed: the counters of PMU msr (other) cannot be measured, "
                             "so the hold cannot be confirmed."),
                ==, 1);
        {
                g_autoptr(sd_bus_message) m =
                        client_get_variant(alice, hold, HOLD, "Obstacles", "a(us)");

                g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "(us)"), >, 0);
                g_assert_cmpint(sd_bus_message_at_end(m, false), >, 0);
        }
}

/* A second hold is measured for itself. */
static void test_second_is_measured(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        g_autoptr(Actor) foreigner G_GNUC_UNUSED = foreigner_new();
        int a;
        _cleanup_close_ int b = -1;

        first = hold_take(alice, &a, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, first));
        second = hold_take(root, &b, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        g_assert_false(hold_wait(root, second));
        close_fd(a);
}

static void test_in_partial(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) foreigner G_GNUC_UNUSED = foreigner_new();
        g_autofree char *path = NULL, *full = NULL;
        _cleanup_close_ int a = -1, b = -1;

        path = hold_take(alice, &a, "a{sv}", 2, BREAKPOINTS, "counters", "u", 3);
        g_assert_true(hold_wait(alice, path));
        a = close_fd(a);
        await(hold_is(alice, path, "ended"));
        full = hold_take(alice, &b, "a{sv}", 2, BREAKPOINTS, "counters", "u", 4);
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, full, HOLD, "Wait", NULL);
}

/* ---- counters of this service that do not yield ---- */

static void test_foreground(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL, *event = watched_event(0), *counter = NULL;
        _cleanup_close_ int lease = -1;

        counter = counter_open(root, event, "a{sv}", 1, "scope", "s", "cpu");
        watched_write(0, 10);
        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, path));
        g_assert_true(counter_is(root, counter, "counting"));
        watched_write(0, 5);
        g_assert_cmpuint(counter_value(root, counter), ==, hits(15));
        /* the client that has it open */
        g_assert_true(hold_names(alice, path, getpid()));
}

/* Nothing of these takes what is missing. */
static void test_without_counters(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autoptr(Actor) foreigner = foreigner_new();
        g_autofree char *path = NULL, *event = watched_event(0), *waiting = NULL, *stopped = NULL;
        _cleanup_close_ int lease = -1;

        waiting = counter_open(root, event, "a{sv}", 2, "attach", "b", 0, "start", "b", 0);
        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, path));
        g_assert_true(hold_names(alice, path, foreigner->pid));
        g_assert_false(hold_names(alice, path, getpid()));
        g_free(path);
        close_fd(lease);
        /* one that is stopped has its breakpoint, on its CPU */
        stopped = counter_open(root, event, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0",
                               "start", "b", 0);
        path = hold_take(alice, &lease, "a{sv}", 3, BREAKPOINTS, "cpus", "s", "0", "best_effort",
                         "b", 1);
        g_assert_false(hold_wait(alice, path));
        g_assert_true(hold_names(alice, path, getpid()));
        if (n_cpus() < 2)
                return;
        g_free(path);
        close_fd(lease);
        path = hold_take(alice, &lease, "a{sv}", 3, BREAKPOINTS, "cpus", "s", "1", "best_effort",
                         "b", 1);
        g_assert_false(hold_wait(alice, path));
        g_assert_false(hold_names(alice, path, getpid()));
}

static void test_foreground_in_exclusive(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;

        counter = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        path = hold_take(alice, &lease, "a{sv}", 2, "pmus", "as", 1, "software", "mode", "s",
                         "exclusive");
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, path, HOLD, "Wait", NULL);
        g_assert_true(hold_names(alice, path, getpid()));
}

static void test_own_in_exclusive(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;

        counter = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        path = hold_take(alice, &lease, "a{sv}", 2, "pmus", "as", 1, "software", "mode", "s",
                         "exclusive");
        g_assert_true(hold_wait(alice, path));
}

static void assert_kept_out(Client *c, const char *event) {
        g_autofree char *pid = g_strdup_printf("pid %d", (int) getpid());

        client_refused(c, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1, event, 1,
                       "scope", "s", "cpu");
        g_assert_nonnull(strstr(c->refusal, pid));
        client_refused(c, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1, event, 2,
                       "scope", "s", "cpu", "role", "s", "monitor");
}

static void test_exclusive_keeps_out(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol"),
                          root = client_new("root");
        g_autofree char *path = NULL, *event = watched_event(0), *own = NULL, *other = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        g_assert_true(hold_wait(alice, path));
        assert_kept_out(carol, event);
        assert_kept_out(root, event);
        client_refused(root, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1, event, 0);
        own = counter_open(alice, event, "a{sv}", 1, "scope", "s", "cpu");
        watched_write(0, 10);
        g_assert_cmpuint(counter_value(alice, own), ==, hits(10));
        /* other counters are not obstacles */
        other = counter_open(carol, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        lease = close_fd(lease);
        await(hold_is(alice, path, "ended"));
        counter_do(root, own, "Close");
        g_free(own);
        own = counter_open(carol, event, "a{sv}", 1, "scope", "s", "cpu");
}

/* An own exclusive hold does not open what another user's keeps closed. */
static void test_exclusive_beside_ones_own(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *mine = NULL, *other = NULL, *event = watched_event(0), *counter = NULL;
        _cleanup_close_ int a = -1, b = -1;

        if (n_cpus() < 2) {
                g_test_skip("needs two CPUs");
                return;
        }
        mine = hold_take(alice, &a, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive", "cpus", "s",
                         "0");
        other = hold_take(root, &b, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive", "cpus", "s",
                          "1");
        g_assert_true(hold_wait(alice, mine));
        g_assert_true(hold_wait(root, other));
        client_refused(alice, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1, event,
                       0);
        counter = counter_open(alice, event, "a{sv}", 2, "scope", "s", "cpu", "cpus", "s", "0");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/obstacle/a-foreign-process-obstructs-and-is-named", test_obstructed);
        g_test_add_func("/obstacle/who-was-there-before-the-service-is-found",
                        test_before_the_service);
        g_test_add_func("/obstacle/monitors-go-on-when-the-hold-is-obstructed",
                        test_monitors_resume);
        g_test_add_func("/obstacle/best-effort-is-granted-and-not-confirmed", test_best_effort);
        g_test_add_func("/obstacle/who-has-gone-is-none", test_gone);
        g_test_add_func("/obstacle/who-counts-on-other-cpus-is-none", test_other_cpu);
        g_test_add_func("/obstacle/a-second-hold-is-measured-for-itself", test_second_is_measured);
        g_test_add_func("/obstacle/what-cannot-be-measured-is-nobodys-fault", test_unmeasured);
        g_test_add_func("/obstacle/a-partial-hold-is-confirmed-beside-it", test_in_partial);
        g_test_add_func("/obstacle/foreground-counters-go-on-and-are-named", test_foreground);
        g_test_add_func("/obstacle/who-has-nothing-of-what-is-missing-is-not-named",
                        test_without_counters);
        g_test_add_func("/obstacle/other-users-foreground-counters-obstruct-exclusive-holds",
                        test_foreground_in_exclusive);
        g_test_add_func("/obstacle/ones-own-foreground-counters-do-not", test_own_in_exclusive);
        g_test_add_func("/obstacle/an-exclusive-hold-keeps-other-users-counters-out",
                        test_exclusive_keeps_out);
        g_test_add_func("/obstacle/an-exclusive-hold-keeps-out-who-has-one-elsewhere",
                        test_exclusive_beside_ones_own);
        return g_test_run();
}
