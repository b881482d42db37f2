/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds of N counters: only as many monitors yield as must, the least important first. */

#include "foreigner.h"

enum { N = 4 };

/* The states of the monitor counters, in order: 'c' counting, 'y' yielded. */
static char *states(Client *c, char *const monitors[], size_t n) {
        GString *text = g_string_new(NULL);

        for (size_t i = 0; i < n; i++) {
                g_autofree char *state = client_get(c, monitors[i], COUNTER, "State");

                g_string_append_c(text, state[0]);
        }
        return g_string_free(text, FALSE);
}

static bool states_are(Client *c, char *const monitors[], const char *wanted) {
        g_autofree char *is = states(c, monitors, strlen(wanted));

        return strcmp(is, wanted) == 0;
}

typedef struct Fixture {
        Client *root, *alice;
        char *monitors[N];
} Fixture;

/* Priorities 10, 40, 20, 30. */
static void fixture_set_up(Fixture *f, const void *data) {
        static const uint32_t priorities[N] = { 10, 40, 20, 30 };

        f->root = client_new("root");
        f->alice = client_new("alice");
        for (size_t i = 0; i < N; i++)
                f->monitors[i] = monitor_open(f->root, i, data ? 5 : priorities[i]);
}

static void fixture_tear_down(Fixture *f, const void *data) {
        for (size_t i = 0; i < N; i++)
                g_free(f->monitors[i]);
        client_free(f->alice);
        client_free(f->root);
}

static char *hold_some(Client *c, int *lease, uint32_t counters) {
        char *path = hold_take(c, lease, "a{sv}", 2, BREAKPOINTS, "counters", "u", counters);

        g_assert_true(hold_wait(c, path));
        return path;
}

static void test_as_many_as_must(Fixture *f, const void *data) {
        static const char *const wanted[] = { "cccc", "yccc", "ycyc", "ycyy", "yyyy" };

        for (uint32_t n = 1; n <= N; n++) {
                g_autofree char *path = NULL, *is = NULL;
                _cleanup_close_ int lease = -1;

                path = hold_some(f->alice, &lease, n);
                is = states(f->root, f->monitors, N);
                g_assert_cmpstr(is, ==, wanted[n]);
                hold_release(f->alice, path);
                await(states_are(f->root, f->monitors, "cccc"));
        }
}

static void test_same_priority(Fixture *f, const void *data) {
        g_autofree char *path = NULL, *is = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_some(f->alice, &lease, 2);
        is = states(f->root, f->monitors, N);
        g_assert_cmpstr(is, ==, "ccyy");
}

static void test_sum(Fixture *f, const void *data) {
        g_autofree char *first = NULL, *second = NULL;
        int a, b;

        first = hold_some(f->alice, &a, 1);
        g_assert_true(states_are(f->root, f->monitors, "yccc"));
        second = hold_some(f->root, &b, 2);
        g_assert_true(states_are(f->root, f->monitors, "ycyy"));
        close_fd(a);
        await(states_are(f->root, f->monitors, "ycyc"));
        close_fd(b);
        await(states_are(f->root, f->monitors, "cccc"));
}

static void test_full_beside_partial(Fixture *f, const void *data) {
        g_autofree char *first = NULL, *second = NULL;
        int a, b;

        first = hold_some(f->alice, &a, 1);
        second = hold_some(f->root, &b, 0);
        g_assert_true(states_are(f->root, f->monitors, "yyyy"));
        close_fd(b);
        await(states_are(f->root, f->monitors, "yccc"));
        close_fd(a);
        await(states_are(f->root, f->monitors, "cccc"));
}

static void test_too_many(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        client_refused(f->alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "Hold", "sa{sv}", "too many",
                       2, BREAKPOINTS, "counters", "u", N + 1);
        g_assert_nonnull(strstr(f->alice->refusal, "counters"));
        /* three and two are more than four: one has to wait for the other */
        path = hold_some(f->alice, &lease, 3);
        client_refused(f->root, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "too many", 2,
                       BREAKPOINTS, "counters", "u", 2);
}

static void test_values(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        int lease;

        for (size_t i = 0; i < N; i++)
                watched_write(i, 10);
        path = hold_some(f->alice, &lease, 2);
        for (size_t i = 0; i < N; i++)
                watched_write(i, 5);
        close_fd(lease);
        await(states_are(f->root, f->monitors, "cccc"));
        for (size_t i = 0; i < N; i++)
                watched_write(i, 3);
        g_assert_cmpuint(counter_value(f->root, f->monitors[0]), ==, hits(13));
        g_assert_cmpuint(counter_value(f->root, f->monitors[1]), ==, hits(18));
        g_assert_cmpuint(counter_value(f->root, f->monitors[2]), ==, hits(13));
        g_assert_cmpuint(counter_value(f->root, f->monitors[3]), ==, hits(18));
}

/* Foreign processes take free counters: then one more monitor counter has to yield. */
static void test_foreigner(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        g_autoptr(Actor) foreigner = NULL;
        _cleanup_close_ int lease = -1;

        counter_do(f->root, f->monitors[3], "Close");
        foreigner = foreigner_new();
        path = hold_some(f->alice, &lease, 2);
        g_assert_true(states_are(f->root, f->monitors, "ycy"));
}

/* What foreigners have is missing for the second hold as well, which was measured beside those
 * monitors that had yielded to the first. */
static void test_foreigner_outlives_the_first(Fixture *f, const void *data) {
        g_autofree char *first = NULL, *second = NULL;
        g_autoptr(Actor) one G_GNUC_UNUSED = NULL;
        g_autoptr(Actor) two G_GNUC_UNUSED = NULL;
        _cleanup_close_ int b = -1;
        int a;

        counter_do(f->root, f->monitors[0], "Close");
        counter_do(f->root, f->monitors[2], "Close");
        one = foreigner_new();
        two = foreigner_new();
        first = hold_some(f->alice, &a, 1);
        second = hold_some(f->root, &b, 1);
        g_assert_true(counter_is(f->root, f->monitors[1], "yielded"));
        close_fd(a);
        await(counter_is(f->root, f->monitors[1], "counting"));
        g_assert_true(counter_is(f->root, f->monitors[3], "yielded"));
        for (unsigned cpu = 0; cpu < n_cpus(); cpu++) {
                _cleanup_close_ int promised = breakpoint_open(-1, (int) cpu);

                g_assert_cmpint(promised, >=, 0);
        }
}

/* A breakpoint takes its counter stopped too: it is one of those that its holder was promised. */
static void test_stopped(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        _cleanup_close_ int a = -1, b = -1;

        first = hold_some(alice, &a, 2);
        for (size_t i = 0; i < 2; i++) {
                g_autofree char *event = watched_event(i);

                g_free(counter_open(alice, event, "a{sv}", 2, "scope", "s", "cpu", "start", "b",
                                    0));
        }
        second = hold_some(root, &b, 2);
}

static void test_more_important(Fixture *f, const void *data) {
        g_autofree char *path = NULL, *event = watched_event(4), *late = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_some(f->alice, &lease, 2);
        g_assert_true(states_are(f->root, f->monitors, "ycyc"));
        late = counter_open(f->root, event, "a{sv}", 3, "scope", "s", "cpu", "role", "s", "monitor",
                            "priority", "u", 35);
        await(states_are(f->root, f->monitors, "ycyy"));
        await(counter_is(f->root, late, "counting"));
        watched_write(4, 3);
        g_assert_cmpuint(counter_value(f->root, late), ==, hits(3));
}

/* ---- who does not yield to every hold ---- */

static char *stubborn_open(Client *c, size_t i, const char *yield) {
        g_autofree char *event = watched_event(i);

        return counter_open(c, event, "a{sv}", 3, "scope", "s", "cpu", "role", "s", "monitor",
                            "yield", "s", yield);
}

static void test_yield_exclusive(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *monitor = stubborn_open(root, 0, "exclusive"), *partial = NULL,
                        *exclusive = NULL;
        int a, b;

        partial = hold_some(alice, &a, 3);
        g_assert_true(counter_is(root, monitor, "counting"));
        close_fd(a);
        await(hold_is(alice, partial, "ended"));
        exclusive = hold_take(alice, &b, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        g_assert_true(hold_wait(alice, exclusive));
        g_assert_true(counter_is(root, monitor, "yielded"));
        close_fd(b);
        await(counter_is(root, monitor, "counting"));
}

static void test_yield_never(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *monitor = stubborn_open(root, 0, "never"), *path = NULL, *effort = NULL;
        _cleanup_close_ int a = -1, b = -1;

        watched_write(0, 10);
        path = hold_take(alice, &a, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, path, HOLD, "Wait", NULL);
        g_assert_true(hold_names(alice, path, getpid()));
        effort = hold_take(alice, &b, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive",
                           "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, effort));
        g_assert_true(counter_is(root, monitor, "counting"));
        watched_write(0, 5);
        g_assert_cmpuint(counter_value(root, monitor), ==, hits(15));
}

static void test_yield_of_root_alone(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        static const char *const yields[] = { "exclusive", "never" };

        for (size_t i = 0; i < G_N_ELEMENTS(yields); i++) {
                client_refused(alice, SD_BUS_ERROR_ACCESS_DENIED, MANAGER, "OpenCounters",
                               "asa{sv}", 1, event, 3, "scope", "s", "cpu", "role", "s", "monitor",
                               "yield", "s", yields[i]);
                g_assert_nonnull(strstr(alice->refusal, "yield"));
        }
}

#define ADD(name, test)                                                                            \
        g_test_add("/partial/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("as-many-monitors-yield-as-must-the-least-important-first", test_as_many_as_must);
        g_test_add("/partial/of-one-priority-the-youngest-yields-first", Fixture, "same",
                   fixture_set_up, test_same_priority, fixture_tear_down);
        ADD("holds-side-by-side-add-up", test_sum);
        ADD("a-full-hold-beside-a-partial-one-has-all", test_full_beside_partial);
        ADD("more-than-there-are-is-refused", test_too_many);
        ADD("who-stays-misses-nothing", test_values);
        ADD("what-a-foreigner-has-is-made-up-for", test_foreigner);
        ADD("what-a-foreigner-has-is-made-up-for-when-the-first-hold-has-ended",
            test_foreigner_outlives_the_first);
        g_test_add_func("/partial/what-is-open-and-stopped-is-the-holders", test_stopped);
        ADD("a-more-important-monitor-that-comes-later-counts", test_more_important);
        g_test_add_func("/partial/yield-exclusive-yields-to-exclusive-alone", test_yield_exclusive);
        g_test_add_func("/partial/yield-never-stays", test_yield_never);
        g_test_add_func("/partial/only-root-may-refuse-to-yield", test_yield_of_root_alone);
        return g_test_run();
}
