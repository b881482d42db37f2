/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds beside users that the service cannot ask to yield: none is confirmed wrongly, and no user
 * is harmed. */

#include "guest-util.h"

#include <signal.h>
#include <sys/wait.h>

static char *hold_in_vain(Client *c, pid_t stranger) {
        int lease;
        char *hold = hold_take(c, &lease, "a{sv}", 0);

        client_refused(c, PERFALLOC_ERROR_OBSTRUCTED, hold, HOLD, "Wait", NULL);
        g_assert_true(client_reads(c, hold, HOLD, "Result", "obstructed"));
        g_assert_true(hold_names(c, hold, stranger));
        close_fd(lease);
        return hold;
}

static void test_obstructed(gconstpointer data) {
        const Stranger *s = data;
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(s);
        g_autofree char *hold = hold_in_vain(alice, stranger->pid);

        stranger_assert_alive(stranger, s->pinned);
}

/* Its events are on while it runs, so it must run during the measurement. */
static void test_task(void) {
        Stranger s = { .cpu = 1, .n = 1, .pinned = true, .own = true };

        cpus_can_be_taken(true);
        threads_keep_off(s.cpu);
        test_obstructed(&s);
        threads_keep_off(-1);
        cpus_can_be_taken(false);
}

/* The counter that is left is of cycles, and no use to who wants one of any kind. */
static void test_instructions(void) {
        Stranger s = { .kind = INSTRUCTIONS, .cpu = -1, .n = GENERAL, .pinned = true };
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autoptr(Actor) stranger = stranger_new(&s);
        g_autofree char *hold = NULL, *cycles = NULL, *stopped = NULL;
        int lease;

        /* these have none of what is missing */
        cycles = counter_open(root, "cycles", "a{sv}", 1, "scope", "s", "cpu");
        stopped = counter_open(root, "instructions", "a{sv}", 2, "scope", "s", "cpu", "start", "b",
                               0);
        hold = hold_take(alice, &lease, "a{sv}", 1, "counters", "u", (uint32_t) 1);
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, hold, HOLD, "Wait", NULL);
        g_assert_true(hold_names(alice, hold, stranger->pid));
        g_assert_false(hold_names(alice, hold, getpid()));
        close_fd(lease);
        stranger_assert_alive(stranger, true);
}

/* CPUs on which a task never rests, and nobody counts. */
static void test_busy(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) first = spinner_new("bob", 0), second = spinner_new("bob", 1);
        unsigned confirmed = 0;

        for (unsigned i = 0; i < 20; i++) {
                g_autofree char *hold = NULL;
                int lease;

                hold = hold_take(alice, &lease, "a{sv}", 1, "best_effort", "b", 1);
                confirmed += hold_wait(alice, hold);
                close_fd(lease);
                await(hold_is(alice, hold, "ended"));
        }
        g_assert_cmpuint(confirmed, ==, 20);
}

static void test_best_effort(gconstpointer data) {
        const Stranger *s = data;
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(s);
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        hold = hold_take(alice, &lease, "a{sv}", 1, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, hold));
        g_assert_true(hold_is(alice, hold, "granted"));
        g_assert_cmpuint(client_get_number(alice, hold, HOLD, "Confirmed", 'b'), ==, 0);
        g_assert_true(hold_names(alice, hold, stranger->pid));
        stranger_assert_alive(stranger, s->pinned);
}

/* The real perf; it counts on all CPUs until it gets a signal. */
static GPid perf_stat(const char *events) {
        char *argv[] = { (char *) "perf", (char *) "stat", (char *) "-a",
                         (char *) "-e",   (char *) events, NULL };
        g_autoptr(GError) error = NULL;
        GPid pid;

        g_spawn_async(NULL, argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                              G_SPAWN_STDERR_TO_DEV_NULL,
                      NULL, NULL, &pid, &error);
        g_assert_no_error(error);
        await(free_on(0) == 0 && free_on(1) == 0);
        return pid;
}

static void test_perf(gconstpointer events) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL, *second = NULL;
        GPid perf = perf_stat(events);
        int lease;

        hold = hold_in_vain(alice, perf);
        g_assert_cmpint(kill(perf, SIGINT), ==, 0);
        g_assert_cmpint(waitpid(perf, NULL, 0), ==, perf);
        second = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(alice, second));
        close_fd(lease);
}

/* A stranger on one CPU does not obstruct the other CPU, and one with few counters does not
 * obstruct a hold of few. */
static void test_elsewhere(void) {
        Stranger s = { .cpu = 0, .n = 4 };
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(&s);
        g_autofree char *other = NULL, *three = NULL, *four = NULL;
        int a, b, c;

        other = hold_take(alice, &a, "a{sv}", 1, "cpus", "s", "1");
        g_assert_true(hold_wait(alice, other));
        close_fd(a);
        await(hold_is(alice, other, "ended"));
        three = hold_take(alice, &b, "a{sv}", 1, "counters", "u", (uint32_t) 3);
        g_assert_true(hold_wait(alice, three));
        close_fd(b);
        await(hold_is(alice, three, "ended"));
        four = hold_take(alice, &c, "a{sv}", 1, "counters", "u", (uint32_t) 4);
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, four, HOLD, "Wait", NULL);
        close_fd(c);
}

/* Enough monitors yield to make room beside the stranger too. */
static void test_more_monitors_yield(void) {
        Stranger s = { .cpu = -1, .n = 2, .pinned = true };
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(&s);
        char *monitors[COUNTERS - 2];
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        for (unsigned i = 0; i < G_N_ELEMENTS(monitors); i++)
                monitors[i] = cycles_monitor(root, i);
        g_assert_cmpuint(free_on(0), ==, 0);
        hold = hold_take(alice, &lease, "a{sv}", 1, "counters", "u", (uint32_t) 3);
        g_assert_true(hold_wait(alice, hold));
        g_assert_cmpuint(free_on(0), ==, 3);
        g_assert_cmpuint(free_on(1), ==, 3);
        for (unsigned i = 0; i < G_N_ELEMENTS(monitors); i++)
                g_assert_true(counter_is(root, monitors[i], i < 3 ? "yielded" : "counting"));
        stranger_assert_alive(stranger, true);
        paths_free(monitors, G_N_ELEMENTS(monitors));
}

/* Seven flexible strangers would starve seven ordinary events of a task; in a hold they are
 * pinned. */
static void test_holder_beside_flexible(void) {
        static const char *const events[] = { "cycles:u", "instructions:u", "instructions:u",
                                              "instructions:u" };
        Stranger s = { .cpu = -1, .n = COUNTERS };
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) stranger = stranger_new(&s), worker = worker_new("alice");
        char *counters[G_N_ELEMENTS(events)];
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        hold = hold_take(alice, &lease, "a{sv}", 1, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, hold));
        counters_open_group(alice, events, G_N_ELEMENTS(events), counters, "a{sv}", 2, "pid", "u",
                            (uint32_t) worker->pid, "group", "b", 1);
        worker_burn(worker, 20);
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                g_auto(Measured) m = counter_read(alice, counters[i]);

                g_assert_cmpuint(m.running, >, 0);
                g_assert_cmpuint(m.running, ==, m.enabled);
                g_assert_cmpstr(m.quality, ==, "exact");
                g_assert_cmpuint(m.value, >=, 20000000);
        }
        stranger_assert_alive(stranger, false);
        paths_free(counters, G_N_ELEMENTS(events));
}

/* All uses of the service's probe, beside strangers of each kind. */
static void test_harms_nobody(void) {
        static const Stranger kinds[] = {
                { .cpu = 1, .n = 2, .pinned = true, .own = true },
                { .cpu = 0, .n = 1, .pinned = true },
                { .cpu = -1, .n = 2 },
                { .cpu = -1, .n = 1, .period = 1000000 },
        };
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        Actor *strangers[G_N_ELEMENTS(kinds)];

        cpus_can_be_taken(true);
        for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
                strangers[i] = stranger_new(&kinds[i]);
        for (unsigned round = 0; round < 6; round++) {
                g_autofree char *hold = NULL;
                int lease;

                hold = hold_take(alice, &lease, "a{sv}", 2, "best_effort", "b", 1, "counters", "u",
                                 (uint32_t) round);
                (void) hold_wait(alice, hold);
                (void) client_probe(root, (int) round % 2);
                for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
                        stranger_assert_alive(strangers[i], kinds[i].pinned);
                close_fd(lease);
                await(hold_is(alice, hold, "ended"));
        }
        for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
                actor_free(strangers[i]);
        cpus_can_be_taken(false);
}

int main(int argc, char **argv) {
        static const Stranger flexible = { .cpu = -1, .n = COUNTERS };
        static const Stranger one_flexible = { .cpu = 1, .n = 1 };
        static const Stranger shares = { .cpu = -1, .n = COUNTERS + 3 };
        static const Stranger pinned = { .cpu = -1, .n = COUNTERS, .pinned = true };
        static const Stranger one_pinned = { .cpu = 1, .n = 1, .pinned = true };
        static const Stranger sampling = { .cpu = 0, .n = 1, .period = 1000000 };

        g_test_init(&argc, &argv, NULL);
        g_test_add_data_func("/stranger/obstructs-by-flexible-events", &flexible, test_obstructed);
        g_test_add_data_func("/stranger/obstructs-by-one-flexible-event", &one_flexible,
                             test_obstructed);
        g_test_add_data_func("/stranger/obstructs-by-events-that-take-turns", &shares,
                             test_obstructed);
        g_test_add_data_func("/stranger/obstructs-by-pinned-events", &pinned, test_obstructed);
        g_test_add_data_func("/stranger/obstructs-by-one-pinned-event", &one_pinned,
                             test_obstructed);
        g_test_add_data_func("/stranger/obstructs-by-a-sampling-event", &sampling, test_obstructed);
        g_test_add_func("/stranger/obstructs-by-a-pinned-event-of-a-task", test_task);
        g_test_add_func("/stranger/that-pins-instructions-leaves-none", test_instructions);
        g_test_add_func("/stranger/that-is-busy-and-does-not-count-obstructs-nobody", test_busy);
        g_test_add_data_func("/stranger/beside-flexible-best-effort-is-not-confirmed", &flexible,
                             test_best_effort);
        g_test_add_data_func("/stranger/beside-pinned-best-effort-is-not-confirmed", &pinned,
                             test_best_effort);
        g_test_add_data_func("/stranger/perf-stat-obstructs-until-it-ends",
                             "cycles,cycles,cycles,cycles,cycles,cycles,cycles,cycles", test_perf);
        g_test_add_data_func("/stranger/pinned-perf-stat-obstructs-until-it-ends",
                             "cycles:D,cycles:D,cycles:D,cycles:D,cycles:D,cycles:D,cycles:D",
                             test_perf);
        g_test_add_func("/stranger/is-in-the-way-of-what-it-has-alone", test_elsewhere);
        g_test_add_func("/stranger/makes-more-monitors-yield", test_more_monitors_yield);
        g_test_add_func("/stranger/does-not-starve-what-the-holder-opens",
                        test_holder_beside_flexible);
        g_test_add_func("/stranger/of-no-kind-is-harmed", test_harms_nobody);
        return g_test_run();
}
