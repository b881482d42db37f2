/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* More events than counters: readings say so. */

#include "guest-util.h"

#include <inttypes.h>

static bool rises(Client *c, const char *path, uint64_t from) {
        return counter_value(c, path) > from;
}

/* Waits until the counter was enabled for so much longer. */
static Measured read_after(Client *c, const char *path, uint64_t nsec) {
        Measured before = counter_read(c, path), now = {};

        do {
                measured_clear(&now);
                g_usleep(10000);
                now = counter_read(c, path);
        } while (now.enabled - before.enabled < nsec);
        measured_clear(&before);
        return now;
}

static void test_seven(void) {
        g_autoptr(Client) alice = client_new("alice");
        char *counters[COUNTERS];

        for (size_t i = 0; i < COUNTERS; i++)
                counters[i] = counter_open(alice, "cycles", "a{sv}", 1, "scope", "s", "cpu");
        for (size_t i = 0; i < COUNTERS; i++) {
                g_auto(Measured) m = read_after(alice, counters[i], 50000000);

                g_assert_cmpstr(m.quality, ==, "exact");
                g_assert_cmpuint(m.running, ==, m.enabled);
        }
        paths_free(counters, COUNTERS);
}

/* Each of eight events is on for seven eighths of the time. */
static void test_eight(void) {
        enum { N = COUNTERS + 1 };
        g_autoptr(Client) alice = client_new("alice");
        char *counters[N];
        double sum = 0;

        for (size_t i = 0; i < N; i++)
                counters[i] = counter_open(alice, "cycles", "a{sv}", 2, "scope", "s", "cpu", "cpus",
                                           "s", "0");
        for (size_t i = 0; i < N; i++) {
                g_auto(Measured) m = read_after(alice, counters[i], 2000000000);
                double ratio = (double) m.running / (double) m.enabled;

                g_assert_cmpstr(m.quality, ==, "scaled");
                g_assert_cmpfloat(ratio, >, 0.75);
                g_assert_cmpfloat(ratio, <, 1.0);
                sum += ratio;
        }
        g_assert_cmpfloat_with_epsilon(sum, COUNTERS, 0.3);
        paths_free(counters, N);
}

/* ---- estimates ---- */

#define SHARED 4 /* events of the service for what TAKEN leaves of the counters of CPU 0: two */
#define TAKEN  5

/* The test's own, pinned: they measure what is true, and leave CPU 0 one counter less than SHARED
 * needs, while CPU 1 has enough of them. */
typedef struct Truth {
        int fds[TAKEN + 1];
} Truth;

static Truth truth_open(void) {
        Truth t;

        for (int i = 0; i <= TAKEN; i++) {
                const EventSpec e = { INSTRUCTIONS, .pid = -1, .cpu = i == TAKEN, .pinned = true,
                                      .user = true };

                t.fds[i] = event_open(&e, -1);
                g_assert_cmpint(t.fds[i], >=, 0);
        }
        return t;
}

static EventTimes truth_read(const Truth *t) {
        EventTimes busy, idle;

        g_assert_true(event_read(t->fds[0], &busy));
        g_assert_true(event_read(t->fds[TAKEN], &idle));
        busy.value += idle.value;
        return busy;
}

static void truth_close(Truth *t) {
        for (int i = 0; i <= TAKEN; i++)
                close_fd(t->fds[i]);
}

static double error_of(double n, double truth) {
        return ABS(n / truth - 1);
}

/* In the time that the counter was enabled for, which is a sum over two CPUs. */
static double truth_between(const EventTimes *begin, const EventTimes *end, uint64_t enabled) {
        return (double) (end->value - begin->value) / (double) (end->enabled - begin->enabled) *
               (double) (enabled / 2);
}

/* One CPU of two is busy, and there the events take turns. Only of user space, because QEMU counts
 * the instructions of all CPUs on each. */
static void test_estimate(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) spinner = spinner_new("alice", 0);
        Truth t = truth_open();
        EventTimes begin, end;
        char *counters[SHARED];

        for (size_t i = 0; i < SHARED; i++)
                counters[i] =
                        counter_open(alice, "instructions:u", "a{sv}", 1, "scope", "s", "cpu");
        for (size_t i = 0; i < SHARED; i++)
                counter_do(alice, counters[i], "Reset");
        begin = truth_read(&t);
        for (size_t i = 0; i < SHARED; i++) {
                g_auto(Measured) m = read_after(alice, counters[i], 4000000000);
                double as_one = (double) m.value * (double) m.enabled / (double) m.running, truth;

                end = truth_read(&t);
                truth = truth_between(&begin, &end, m.enabled);
                g_test_message("true %.0f, estimate %" PRIu64 ", sums scaled as one %.0f", truth,
                               m.estimate, as_one);
                g_assert_cmpstr(m.quality, ==, "scaled");
                g_assert_cmpfloat(error_of((double) m.estimate, truth), <, 0.05);
                g_assert_cmpfloat(error_of(as_one, truth), >, 0.25);
        }
        paths_free(counters, SHARED);
        truth_close(&t);
}

static void refused_group(Client *c, const char *event, unsigned n, const char *scope) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");
        g_autofree char *last = g_strdup_printf("'%s'", event);

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (unsigned i = 0; i < n; i++)
                g_assert_cmpint(sd_bus_message_append_basic(m, 's', event), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 2, "group", "b", 1, "scope", "s", scope),
                        >=, 0);
        client_refused_message(c, PERFALLOC_ERROR_INVALID_EVENT, m);
        g_assert_nonnull(strstr(c->refusal, last));
        g_assert_nonnull(strstr(c->refusal, PMU));
}

static void test_group_too_large(void) {
        g_autoptr(Client) root = client_new("root");

        for (unsigned more = 1; more < 4; more++) {
                refused_group(root, "cycles", COUNTERS + more, "process");
                refused_group(root, "cycles", COUNTERS + more, "cpu");
                refused_group(root, "instructions", GENERAL + more, "process");
                refused_group(root, "instructions", GENERAL + more, "cpu");
        }
}

/* All events of a CPU precede those of its tasks, except pinned ones. */
static void test_starved(void) {
        Stranger s = { .cpu = -1, .n = COUNTERS };
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(&s), worker = worker_new("alice");
        g_autofree char *path = NULL;

        path = counter_open(alice, "cycles:u", "a{sv}", 1, "pid", "u", (uint32_t) worker->pid);
        worker_burn(worker, 5);
        {
                g_auto(Measured) m = counter_read(alice, path);

                g_assert_cmpstr(m.quality, ==, "not-counted");
                g_assert_cmpuint(m.enabled, >, 0);
                g_assert_cmpuint(m.running, ==, 0);
                g_assert_cmpuint(m.value, ==, 0);
        }
        g_clear_pointer(&stranger, actor_free);
        worker_burn(worker, 5);
        {
                g_auto(Measured) m = counter_read(alice, path);

                g_assert_cmpstr(m.quality, ==, "scaled");
                g_assert_cmpuint(m.value, >, 0);
        }
}

/* A pinned event that comes too late to a full PMU gets into error, and counts once there is
 * room. */
static void test_pinned_waits(gconstpointer scope) {
        Stranger s = { .cpu = -1, .n = COUNTERS, .pinned = true };
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(&s), spinner = spinner_new("alice", 0);
        g_autofree char *path = NULL, *hold = NULL;
        _cleanup_close_ int lease = -1;

        if (strcmp(scope, "cpu") == 0) { /* which needs a hold */
                hold = hold_take(alice, &lease, "a{sv}", 1, "best_effort", "b", 1);
                g_assert_false(hold_wait(alice, hold));
                path = counter_open(alice, "cycles", "a{sv}", 2, "scope", "s", "cpu", "pinned", "b",
                                    1);
        } else
                path = counter_open(alice, "cycles", "a{sv}", 2, "pid", "u",
                                    (uint32_t) spinner->pid, "pinned", "b", 1);
        await(counter_is(alice, path, "error"));
        {
                g_auto(Measured) m = counter_read(alice, path);

                g_assert_cmpstr(m.quality, ==, "not-counted");
                g_assert_cmpuint(m.value, ==, 0);
        }
        stranger_assert_alive(stranger, true);
        g_clear_pointer(&stranger, actor_free);
        await(counter_is(alice, path, "counting"));
        await(rises(alice, path, 0));
        {
                g_auto(Measured) m = counter_read(alice, path);

                g_assert_cmpstr(m.quality, ==, "scaled");
        }
}

/* Task-pinned events lose their place to CPU-pinned ones. The value neither falls nor is
 * invented. */
static void test_pinned_is_dropped(void) {
        static const char *const events[] = { "cycles:u", "instructions:u" };
        Stranger s = { .cpu = -1, .n = COUNTERS, .pinned = true };
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = NULL, spinner = spinner_new("alice", 0);
        char *paths[G_N_ELEMENTS(events)];
        uint64_t before[G_N_ELEMENTS(events)];

        counters_open_group(alice, events, G_N_ELEMENTS(events), paths, "a{sv}", 3, "pid", "u",
                            (uint32_t) spinner->pid, "pinned", "b", 1, "group", "b", 1);
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                await(rises(alice, paths[i], 1000000));
                g_auto(Measured) m = counter_read(alice, paths[i]);

                g_assert_cmpstr(m.quality, ==, "exact");
                before[i] = m.value;
        }
        stranger = stranger_new(&s);
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                await(counter_is(alice, paths[i], "error"));
                g_auto(Measured) m = counter_read(alice, paths[i]);

                g_assert_cmpstr(m.quality, ==, "not-counted");
                g_assert_cmpuint(m.value, >=, before[i]);
        }
        g_clear_pointer(&stranger, actor_free);
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                await(counter_is(alice, paths[i], "counting"));
                await(rises(alice, paths[i], before[i] + 1000000));
                g_auto(Measured) m = counter_read(alice, paths[i]);

                g_assert_cmpstr(m.quality, ==, "scaled");
        }
        paths_free(paths, G_N_ELEMENTS(events));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/multiplex/seven-cycles-events-are-exact", test_seven);
        g_test_add_func("/multiplex/eight-take-turns-and-say-so", test_eight);
        g_test_add_func("/multiplex/each-cpu-is-scaled-by-itself", test_estimate);
        g_test_add_func("/multiplex/a-group-that-never-fits-is-refused-by-member",
                        test_group_too_large);
        g_test_add_func("/multiplex/what-never-ran-is-not-counted", test_starved);
        g_test_add_data_func("/multiplex/pinned-on-a-cpu-gets-an-error-and-comes-back", "cpu",
                             test_pinned_waits);
        g_test_add_data_func("/multiplex/pinned-on-a-task-gets-an-error-and-comes-back", "process",
                             test_pinned_waits);
        g_test_add_func("/multiplex/a-pinned-group-that-is-dropped-does-not-pretend",
                        test_pinned_is_dropped);
        return g_test_run();
}
