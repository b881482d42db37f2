/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds of N counters: only as many monitors yield as must, the least important first. */

#include "foreigner.h"

enum { N = 4 };

/* The monitors' states in order: 'c' counting, 'y' yielded. */
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

typedef struct Desk {
        Client *root, *alice;
        char *monitors[N];
} Desk;

/* Priorities 10, 40, 20, 30. */
static void desk_up(Desk *d, const void *data) {
        static const uint32_t priorities[N] = { 10, 40, 20, 30 };

        d->root = client_new("root");
        d->alice = client_new("alice");
        for (size_t i = 0; i < N; i++)
                d->monitors[i] = monitor_open(d->root, i, data ? 5 : priorities[i]);
}

static void desk_down(Desk *d, const void *data) {
        for (size_t i = 0; i < N; i++)
                g_free(d->monitors[i]);
        client_free(d->alice);
        client_free(d->root);
}

static char *hold_some(Client *c, int *lease, uint32_t counters) {
        char *path = hold_take(c, lease, "a{sv}", 2, BREAKPOINTS, "counters", "u", counters);

        g_assert_true(hold_wait(c, path));
        return path;
}

static void test_as_many_as_must(Desk *d, const void *data) {
        static const char *const wanted[] = { "cccc", "yccc", "ycyc", "ycyy", "yyyy" };

        for (uint32_t n = 1; n <= N; n++) {
                g_autofree char *path = NULL, *is = NULL;
                _cleanup_close_ int lease = -1;

                path = hold_some(d->alice, &lease, n);
                is = states(d->root, d->monitors, N);
                g_assert_cmpstr(is, ==, wanted[n]);
                hold_release(d->alice, path);
                await(states_are(d->root, d->monitors, "cccc"));
        }
}

static void test_same_priority(Desk *d, const void *data) {
        g_autofree char *path = NULL, *is = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_some(d->alice, &lease, 2);
        is = states(d->root, d->monitors, N);
        g_assert_cmpstr(is, ==, "ccyy");
}

static void test_sum(Desk *d, const void *data) {
        g_autofree char *first = NULL, *second = NULL;
        int a, b;

        first = hold_some(d->alice, &a, 1);
        g_assert_true(states_are(d->root, d->monitors, "yccc"));
        second = hold_some(d->root, &b, 2);
        g_assert_true(states_are(d->root, d->monitors, "ycyy"));
        close_fd(a);
        await(states_are(d->root, d->monitors, "ycyc"));
        close_fd(b);
        await(states_are(d->root, d->monitors, "cccc"));
}

static void test_full_beside_partial(Desk *d, const void *data) {
        g_autofree char *first = NULL, *second = NULL;
        int a, b;

        first = hold_some(d->alice, &a, 1);
        second = hold_some(d->root, &b, 0);
        g_assert_true(states_are(d->root, d->monitors, "yyyy"));
        close_fd(b);
        await(states_are(d->root, d->monitors, "yccc"));
        close_fd(a);
        await(states_are(d->root, d->monitors, "cccc"));
}

static void test_too_many(Desk *d, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        client_refused(d->alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "Hold", "sa{sv}", "too many",
                       2, BREAKPOINTS, "counters", "u", N + 1);
        g_assert_nonnull(strstr(d->alice->refusal, "counters"));
        /* three and two are more than four: one has to wait for the other */
        path = hold_some(d->alice, &lease, 3);
        client_refused(d->root, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "too many", 2,
                       BREAKPOINTS, "counters", "u", 2);
}

static void test_values(Desk *d, const void *data) {
        g_autofree char *path = NULL;
        int lease;

        for (size_t i = 0; i < N; i++)
                watched_write(i, 10);
        path = hold_some(d->alice, &lease, 2);
        for (size_t i = 0; i < N; i++)
                watched_write(i, 5);
        close_fd(lease);
        await(states_are(d->root, d->monitors, "cccc"));
        for (size_t i = 0; i < N; i++)
                watched_write(i, 3);
        g_assert_cmpuint(counter_value(d->root, d->monitors[0]), ==, 13);
        g_assert_cmpuint(counter_value(d->root, d->monitors[1]), ==, 18);
        g_assert_cmpuint(counter_value(d->root, d->monitors[2]), ==, 13);
        g_assert_cmpuint(counter_value(d->root, d->monitors[3]), ==, 18);
}

/* Foreign processes take of what is free: then one monitor more has to go. */
static void test_foreigner(Desk *d, const void *data) {
        g_autofree char *path = NULL;
        g_autoptr(Actor) foreigner = NULL;
        _cleanup_close_ int lease = -1;

        counter_do(d->root, d->monitors[3], "Close");
        foreigner = foreigner_new();
        path = hold_some(d->alice, &lease, 2);
        g_assert_true(states_are(d->root, d->monitors, "ycy"));
}

static void test_more_important(Desk *d, const void *data) {
        g_autofree char *path = NULL, *event = watched_event(4), *late = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_some(d->alice, &lease, 2);
        g_assert_true(states_are(d->root, d->monitors, "ycyc"));
        late = counter_open(d->root, event, "a{sv}", 3, "scope", "s", "cpu", "role", "s", "monitor",
                            "priority", "u", 35);
        await(states_are(d->root, d->monitors, "ycyy"));
        await(counter_is(d->root, late, "counting"));
        watched_write(4, 3);
        g_assert_cmpuint(counter_value(d->root, late), ==, 3);
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
        g_assert_cmpuint(counter_value(root, monitor), ==, 15);
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

#define ADD(name, test) g_test_add("/partial/" name, Desk, NULL, desk_up, test, desk_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("as-many-monitors-yield-as-must-the-least-important-first", test_as_many_as_must);
        g_test_add("/partial/of-one-priority-the-youngest-yields-first", Desk, "same", desk_up,
                   test_same_priority, desk_down);
        ADD("holds-side-by-side-add-up", test_sum);
        ADD("a-full-hold-beside-a-partial-one-has-all", test_full_beside_partial);
        ADD("more-than-there-are-is-refused", test_too_many);
        ADD("who-stays-misses-nothing", test_values);
        ADD("what-a-foreigner-has-is-made-up-for", test_foreigner);
        ADD("a-more-important-monitor-that-comes-later-counts", test_more_important);
        g_test_add_func("/partial/yield-exclusive-yields-to-exclusive-alone", test_yield_exclusive);
        g_test_add_func("/partial/yield-never-stays", test_yield_never);
        g_test_add_func("/partial/only-root-may-refuse-to-yield", test_yield_of_root_alone);
        return g_test_run();
}
