/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Monitor counters yield to holds and go on by themselves. Their counts are never lost, and what
 * they do not count is never shown as counted. */

#include "foreigner.h"

#include <sched.h>
#include <signal.h>

enum { N = 4 }; /* the breakpoints of a CPU, which the monitors have all */

typedef struct Fixture {
        Client *root, *alice;
        char *monitors[N];
} Fixture;

static void fixture_set_up(Fixture *f, const void *data) {
        f->root = client_new("root");
        f->alice = client_new("alice");
        for (size_t i = 0; i < N; i++)
                f->monitors[i] = monitor_open(f->root, i, 0);
}

static void fixture_tear_down(Fixture *f, const void *data) {
        for (size_t i = 0; i < N; i++)
                g_free(f->monitors[i]);
        client_free(f->alice);
        client_free(f->root);
}

static char *hold_all(Client *c, int *lease) {
        char *path = hold_take(c, lease, "a{sv}", 1, BREAKPOINTS);

        g_assert_true(hold_wait(c, path));
        return path;
}

static void assert_all_are(Fixture *f, const char *state) {
        for (size_t i = 0; i < N; i++)
                await(counter_is(f->root, f->monitors[i], state));
}

static void assert_measured(Client *c, const char *path, uint64_t value, const char *quality) {
        g_auto(Measured) m = counter_read(c, path);

        g_assert_cmpuint(m.value, ==, value);
        g_assert_cmpstr(m.quality, ==, quality);
}

static void test_values(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        for (size_t i = 0; i < N; i++) {
                watched_write(i, 10);
                assert_measured(f->root, f->monitors[i], hits(10), "exact");
        }
        path = hold_all(f->alice, &lease);
        for (size_t i = 0; i < N; i++) {
                g_assert_true(counter_is(f->root, f->monitors[i], "yielded"));
                watched_write(i, 5);
                assert_measured(f->root, f->monitors[i], hits(10), "not-counted");
        }
        lease = close_fd(lease);
        assert_all_are(f, "counting");
        for (size_t i = 0; i < N; i++) {
                watched_write(i, 3);
                assert_measured(f->root, f->monitors[i], hits(13), "exact");
        }
}

static void test_many_yields(Fixture *f, const void *data) {
        g_auto(Measured) before = counter_read(f->root, f->monitors[0]);

        for (unsigned round = 1; round <= 20; round++) {
                g_auto(Measured) after = {};
                g_autofree char *path = NULL;
                int lease;

                watched_write(0, 7);
                path = hold_all(f->alice, &lease);
                hold_release(f->alice, path);
                close_fd(lease);
                await(counter_is(f->root, f->monitors[0], "counting"));
                after = counter_read(f->root, f->monitors[0]);
                g_assert_cmpuint(after.value, ==, hits(7 * round));
                g_assert_cmpuint(after.enabled, >=, before.enabled);
                g_assert_cmpuint(after.running, >=, before.running);
                measured_clear(&before);
                before = after;
                after.quality = NULL;
        }
}

/* Another process of the user, without the service, opens the four on itself. */
static int play_four(int fd, const void *data) {
        int n = 0, r = 0;

        while (n < N && (r = breakpoint_open(0, -1)) >= 0)
                n++;
        return r == -ENOSPC || n == N ? n : 100;
}

static int ordinary_program(void) {
        g_autoptr(Actor) bob = actor_new("bob", play_four, NULL);

        return actor_join(bob);
}

static void test_ordinary_program(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        g_assert_cmpint(ordinary_program(), ==, 0);
        path = hold_all(f->alice, &lease);
        g_assert_cmpint(ordinary_program(), ==, N);
        lease = close_fd(lease);
        assert_all_are(f, "counting");
        g_assert_cmpint(ordinary_program(), ==, 0);
}

static void test_stop_while_yielded(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        watched_write(0, 10);
        path = hold_all(f->alice, &lease);
        counter_do(f->root, f->monitors[0], "Stop");
        g_assert_true(counter_is(f->root, f->monitors[0], "yielded"));
        lease = close_fd(lease);
        await(counter_is(f->root, f->monitors[0], "stopped"));
        watched_write(0, 3);
        g_assert_cmpuint(counter_value(f->root, f->monitors[0]), ==, hits(10));
}

static void test_start_while_yielded(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        counter_do(f->root, f->monitors[0], "Stop");
        path = hold_all(f->alice, &lease);
        counter_do(f->root, f->monitors[0], "Start");
        watched_write(0, 5);
        g_assert_true(counter_is(f->root, f->monitors[0], "yielded"));
        lease = close_fd(lease);
        await(counter_is(f->root, f->monitors[0], "counting"));
        watched_write(0, 3);
        assert_measured(f->root, f->monitors[0], hits(3), "exact");
}

static void test_reset_while_yielded(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        watched_write(0, 10);
        watched_write(1, 10);
        path = hold_all(f->alice, &lease);
        counter_do(f->root, f->monitors[0], "Reset");
        g_assert_cmpuint(counter_value(f->root, f->monitors[0]), ==, 0);
        lease = close_fd(lease);
        assert_all_are(f, "counting");
        watched_write(0, 3);
        g_assert_cmpuint(counter_value(f->root, f->monitors[0]), ==, hits(3));
        g_assert_cmpuint(counter_value(f->root, f->monitors[1]), ==, hits(10));
}

static void test_close_while_yielded(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_all(f->alice, &lease);
        counter_do(f->root, f->monitors[0], "Close");
        g_assert_false(client_finds(f->root, f->monitors[0], COUNTER));
        lease = close_fd(lease);
        for (size_t i = 1; i < N; i++)
                await(counter_is(f->root, f->monitors[i], "counting"));
        g_assert_cmpint(ordinary_program(), ==, 1);
}

/* How often this State of the counter was signalled. */
static unsigned times_told(GPtrArray *told, const char *state) {
        unsigned n = 0;

        for (guint i = 0; i < told->len; i++)
                n += strcmp(told->pdata[i], state) == 0;
        return n;
}

static void hear_states(Client *c, const char *path, const char *last, GPtrArray *told) {
        while (times_told(told, last) == 0) {
                g_autoptr(sd_bus_message) m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC);
                const char *interface, *name, *value;

                g_assert_nonnull(m);
                if (!sd_bus_message_is_signal(m, NULL, "PropertiesChanged") ||
                    strcmp(sd_bus_message_get_path(m), path) != 0)
                        continue;
                g_assert_cmpint(sd_bus_message_read(m, "s", &interface), >, 0);
                g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "{sv}"), >, 0);
                g_assert_cmpint(sd_bus_message_read(m, "{sv}", &name, "s", &value), >, 0);
                g_assert_cmpstr(name, ==, "State");
                g_ptr_array_add(told, g_strdup(value));
        }
}

static void test_second_hold(Fixture *f, const void *data) {
        g_autoptr(GPtrArray) told = g_ptr_array_new_with_free_func(g_free);
        g_autofree char *first = NULL, *second = NULL;
        int a, b;

        (void) counter_value(f->root, f->monitors[0]);
        await(counter_is(f->root, f->monitors[0], "counting"));
        client_watch(f->root);
        first = hold_all(f->alice, &a);
        second = hold_all(f->root, &b);
        close_fd(a);
        await(hold_is(f->alice, first, "ended"));
        assert_all_are(f, "yielded");
        close_fd(b);
        hear_states(f->root, f->monitors[0], "counting", told);
        g_assert_cmpuint(times_told(told, "yielded"), ==, 1);
        g_assert_cmpuint(told->len, ==, 2);
}

static void test_other_cpu(Fixture *f, const void *data) {
        g_autofree char *path = NULL, *event = watched_event(0), *here = NULL, *there = NULL;
        _cleanup_close_ int lease = -1;

        if (n_cpus() < 2) {
                g_test_skip("one CPU only");
                return;
        }
        for (size_t i = 0; i < N; i++)
                counter_do(f->root, f->monitors[i], "Close");
        here = counter_open(f->root, event, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0",
                            "role", "s", "monitor");
        there = counter_open(f->root, event, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "1",
                             "role", "s", "monitor");
        path = hold_take(f->alice, &lease, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "0");
        g_assert_true(hold_wait(f->alice, path));
        g_assert_true(counter_is(f->root, here, "yielded"));
        g_assert_true(counter_is(f->root, there, "counting"));
}

static void write_on(unsigned cpu, unsigned n) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        g_assert_cmpint(sched_setaffinity(0, sizeof(set), &set), ==, 0);
        watched_write(0, n);
}

/* The row of one CPU in ReadEach. */
static char *row_read(Client *c, const char *path, int cpu, uint64_t *ret_value) {
        g_autoptr(sd_bus_message) rows = client_call(c, path, COUNTER, "ReadEach", NULL);
        const char *quality = NULL;
        int row_cpu = -1;

        g_assert_cmpint(sd_bus_message_enter_container(rows, 'a', "(iuttts)"), >, 0);
        while (row_cpu != cpu)
                g_assert_cmpint(sd_bus_message_read(rows, "(iuttts)", &row_cpu, NULL, ret_value,
                                                    NULL, NULL, &quality),
                                >, 0);
        return g_strdup(quality);
}

static bool row_is(Client *c, const char *path, int cpu, const char *quality) {
        uint64_t value;
        g_autofree char *now = row_read(c, path, cpu, &value);

        return strcmp(now, quality) == 0;
}

static void assert_row(Client *c, const char *path, int cpu, uint64_t value, const char *quality) {
        uint64_t row_value = 0;
        g_autofree char *row_quality = row_read(c, path, cpu, &row_value);

        g_assert_cmpuint(row_value, ==, value);
        g_assert_cmpstr(row_quality, ==, quality);
}

/* A hold of one CPU takes that CPU's part of a monitor of all; the others count on. */
static void test_part_of_cpus(Fixture *f, const void *data) {
        g_autofree char *path = NULL, *monitor = f->monitors[0];
        _cleanup_close_ int lease = -1;

        if (n_cpus() < 2) {
                g_test_skip("one CPU only");
                return;
        }
        f->monitors[0] = NULL;
        write_on(0, 10);
        write_on(1, 20);
        path = hold_take(f->alice, &lease, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "0");
        g_assert_true(hold_wait(f->alice, path));
        g_assert_true(counter_is(f->root, monitor, "counting"));
        write_on(0, 1000);
        write_on(1, 3);
        assert_row(f->root, monitor, 0, hits(10), "not-counted");
        assert_row(f->root, monitor, 1, hits(23), "exact");
        lease = close_fd(lease);
        await(row_is(f->root, monitor, 0, "exact"));
        write_on(0, 5);
        write_on(1, 5);
        assert_row(f->root, monitor, 0, hits(15), "exact");
        assert_row(f->root, monitor, 1, hits(28), "exact");
}

static void test_user_with_monitor(Fixture *f, const void *data) {
        g_autoptr(Client) carol = client_new("carol"), dave = client_new("dave");
        g_autofree char *monitor = NULL, *path = NULL, *event = watched_event(0);
        _cleanup_close_ int lease = -1;

        counter_do(f->root, f->monitors[0], "Close");
        client_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenCounters", "asa{sv}", 1, event, 2, "scope", "s", "cpu", "role", "s",
                       "monitor");
        monitor = monitor_open(carol, 0, 0);
        g_assert_true(client_reads(carol, monitor, COUNTER, "Role", "monitor"));
        watched_write(0, 10);
        path = hold_all(f->alice, &lease);
        g_assert_true(counter_is(carol, monitor, "yielded"));
        lease = close_fd(lease);
        await(counter_is(carol, monitor, "counting"));
        watched_write(0, 3);
        assert_measured(carol, monitor, hits(13), "exact");
}

/* ---- without the four ---- */

static void test_opened_while_held(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *path = NULL, *monitor = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_all(alice, &lease);
        monitor = monitor_open(root, 0, 0);
        g_assert_true(counter_is(root, monitor, "yielded"));
        watched_write(0, 5);
        assert_measured(root, monitor, 0, "not-counted");
        g_assert_cmpint(ordinary_program(), ==, N);
        lease = close_fd(lease);
        await(counter_is(root, monitor, "counting"));
        watched_write(0, 3);
        assert_measured(root, monitor, hits(3), "exact");
}

static void test_software(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *path = NULL, *monitor = NULL;
        _cleanup_close_ int lease = -1;
        uint64_t value;

        monitor = counter_open(root, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "role", "s",
                               "monitor");
        await(counter_value(root, monitor) > 0);
        path = hold_take(alice, &lease, "a{sv}", 1, "pmus", "as", 1, "software");
        g_assert_true(hold_wait(alice, path));
        g_assert_true(counter_is(root, monitor, "yielded"));
        value = counter_value(root, monitor);
        assert_measured(root, monitor, value, "not-counted");
        lease = close_fd(lease);
        await(counter_is(root, monitor, "counting"));
        g_assert_cmpuint(counter_value(root, monitor), >=, value);
        await(counter_value(root, monitor) > value);
}

static void test_foreground(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *path = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;
        uint64_t value;

        counter = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        path = hold_take(alice, &lease, "a{sv}", 1, "pmus", "as", 1, "software");
        g_assert_true(hold_wait(alice, path));
        g_assert_true(counter_is(root, counter, "counting"));
        value = counter_value(root, counter);
        await(counter_value(root, counter) > value);
}

static void test_process_monitor(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *path = NULL, *monitor = NULL, *event = watched_event(0);
        _cleanup_close_ int lease = -1;

        monitor = counter_open(root, event, "a{sv}", 1, "role", "s", "monitor");
        watched_write(0, 10);
        assert_measured(root, monitor, hits(10), "exact");
        path = hold_all(alice, &lease);
        watched_write(0, 5);
        assert_measured(root, monitor, hits(10), "not-counted");
        g_assert_cmpint(ordinary_program(), ==, N);
        lease = close_fd(lease);
        await(counter_is(root, monitor, "counting"));
        watched_write(0, 3);
        assert_measured(root, monitor, hits(13), "exact");
}

static void test_group(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *first = watched_event(0), *second = watched_event(1), *path = NULL;
        g_autoptr(sd_bus_message) reply = NULL;
        const char *a, *b;
        _cleanup_close_ int lease = -1;

        reply = client_call(root, MANAGER, "OpenCounters", "asa{sv}", 2, first, second, 3, "scope",
                            "s", "cpu", "role", "s", "monitor", "group", "b", 1);
        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &a, &b), >, 0);
        watched_write(0, 10);
        watched_write(1, 20);
        path = hold_all(alice, &lease);
        g_assert_true(counter_is(root, a, "yielded"));
        g_assert_true(counter_is(root, b, "yielded"));
        lease = close_fd(lease);
        await(counter_is(root, a, "counting"));
        watched_write(0, 1);
        watched_write(1, 2);
        assert_measured(root, a, hits(11), "exact");
        assert_measured(root, b, hits(22), "exact");
}

static void test_descendants(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *event = watched_event(0);

        client_refused(root, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 2, "role", "s", "monitor", "descendants", "b", 1);
        g_assert_nonnull(strstr(root->refusal, "descendants"));
}

/* ---- reopening ---- */

static unsigned count_in_state(Fixture *f, const char *state) {
        unsigned n = 0;

        for (size_t i = 0; i < N; i++)
                n += counter_is(f->root, f->monitors[i], state);
        return n;
}

static void test_stolen(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        g_autoptr(Actor) thief = NULL;
        _cleanup_close_ int lease = -1;

        for (size_t i = 0; i < N; i++)
                watched_write(i, 10);
        path = hold_all(f->alice, &lease);
        thief = foreigner_new();
        lease = close_fd(lease);
        await(count_in_state(f, "error") == 1 && count_in_state(f, "counting") == N - 1);
        for (size_t i = 0; i < N; i++) {
                bool counts = counter_is(f->root, f->monitors[i], "counting");

                assert_measured(f->root, f->monitors[i], hits(10),
                                counts ? "exact" : "not-counted");
        }
        g_assert_cmpint(actor_join(thief), ==, 0);
        assert_all_are(f, "counting");
        for (size_t i = 0; i < N; i++) {
                watched_write(i, 3);
                assert_measured(f->root, f->monitors[i], hits(13), "exact");
        }
}

#define ADD(name, test)                                                                            \
        g_test_add("/monitor/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("values-go-on-after-a-hold", test_values);
        ADD("values-never-go-back", test_many_yields);
        ADD("an-ordinary-program-has-the-counters-in-a-hold-alone", test_ordinary_program);
        ADD("stop-while-yielded-holds-afterwards", test_stop_while_yielded);
        ADD("start-while-yielded-holds-afterwards", test_start_while_yielded);
        ADD("reset-while-yielded-holds-at-once", test_reset_while_yielded);
        ADD("close-while-yielded-takes-nothing-back", test_close_while_yielded);
        ADD("a-second-hold-yields-nobody-anew", test_second_hold);
        ADD("a-hold-of-another-cpu-leaves-it-alone", test_other_cpu);
        ADD("a-hold-of-one-cpu-takes-that-part-alone", test_part_of_cpus);
        ADD("an-ordinary-user-may-have-one-with-the-action", test_user_with_monitor);
        ADD("one-that-cannot-be-opened-again-says-so-and-comes-back", test_stolen);
        g_test_add_func("/monitor/one-opened-in-a-hold-counts-after-it", test_opened_while_held);
        g_test_add_func("/monitor/software-ones-stop-in-a-hold", test_software);
        g_test_add_func("/monitor/foreground-counters-do-not-yield", test_foreground);
        g_test_add_func("/monitor/one-of-a-process-yields-too", test_process_monitor);
        g_test_add_func("/monitor/a-group-yields-as-one", test_group);
        g_test_add_func("/monitor/descendants-are-refused-where-yielding-closes", test_descendants);
        return g_test_run();
}
