/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds of the CPUs' counters: what monitors keep, what the holder gets, how monitors go on. */

#include "cpu-switch.h"
#include "guest-util.h"

static void test_default_hold(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        char *monitors[COUNTERS + 1];
        uint64_t before[G_N_ELEMENTS(monitors)];
        g_autofree char *hold = NULL;
        int lease;

        for (size_t i = 0; i < G_N_ELEMENTS(monitors); i++)
                monitors[i] = cycles_monitor(root, 0);
        g_assert_cmpuint(free_on(0), ==, 0);
        g_assert_cmpuint(free_on(1), ==, 0);

        hold = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(alice, hold));
        g_assert_cmpuint(free_on(0), ==, COUNTERS);
        g_assert_cmpuint(free_on(1), ==, COUNTERS);
        for (size_t i = 0; i < G_N_ELEMENTS(monitors); i++) {
                g_assert_true(counter_is(root, monitors[i], "yielded"));
                before[i] = counter_value(root, monitors[i]);
        }
        close_fd(lease);
        await(hold_is(alice, hold, "ended"));
        for (size_t i = 0; i < G_N_ELEMENTS(monitors); i++) {
                g_assert_true(counter_is(root, monitors[i], "counting"));
                await(counter_value(root, monitors[i]) > before[i]);
        }
        g_assert_cmpuint(free_on(0), ==, 0);
        paths_free(monitors, G_N_ELEMENTS(monitors));
}

/* The emulated counter of user space also counts some thousand kernel instructions of a task switch
 * or an interrupt. So of many short rounds, the least counts. */
#define ROUNDS 20

typedef struct GroupValues {
        uint64_t n, enabled, running, values[COUNTERS];
} GroupValues;

static void group_read(int leader, GroupValues *ret) {
        g_assert_cmpint(read(leader, ret, sizeof(*ret)), ==, sizeof(*ret));
        g_assert_cmpuint(ret->n, ==, COUNTERS);
}

static void least_counted(int leader, uint64_t work, uint64_t *ret) {
        GroupValues before, after;

        for (size_t i = 0; i < COUNTERS; i++)
                ret[i] = UINT64_MAX;
        for (unsigned round = 0; round < ROUNDS; round++) {
                group_read(leader, &before);
                burn(work);
                group_read(leader, &after);
                g_assert_cmpuint(after.running, ==, after.enabled);
                for (size_t i = 0; i < COUNTERS; i++)
                        ret[i] = MIN(ret[i], after.values[i] - before.values[i]);
        }
}

/* One cycle counter and six of instructions, in an own hold and beside monitors that want them all.
 * The counts of two stretches of work differ by the difference of their lengths. */
static int count_exactly(int fd, const void *data) {
        static const char *const events[COUNTERS] = {
                "cycles:u",       "instructions:u", "instructions:u", "instructions:u",
                "instructions:u", "instructions:u", "instructions:u",
        };
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL;
        char *counters[COUNTERS];
        uint64_t little[COUNTERS], much[COUNTERS];
        int leader, lease;

        hold = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(alice, hold));
        counters_open_group(alice, events, COUNTERS, counters, "a{sv}", 1, "group", "b", 1);
        leader = counter_fd(alice, counters[0]);
        least_counted(leader, 20000, little);
        least_counted(leader, 80000, much);
        g_assert_cmpuint(little[0], >=, 20000);
        for (size_t i = 1; i < COUNTERS; i++) {
                g_assert_cmpuint(little[i], >=, 20000);
                g_assert_cmpuint(much[i] - little[i], ==, 60000);
        }
        for (size_t i = 0; i < COUNTERS; i++) {
                g_auto(Measured) m = counter_read(alice, counters[i]);

                g_assert_cmpstr(m.quality, ==, "exact");
                g_assert_cmpuint(m.running, ==, m.enabled);
                g_assert_cmpuint(m.value, >=, ROUNDS * 100000);
        }
        return 0;
}

static void test_holder_counts_exactly(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) holder = NULL;
        char *monitors[COUNTERS];

        for (size_t i = 0; i < COUNTERS; i++)
                monitors[i] = cycles_monitor(root, 0);
        holder = actor_new("alice", count_exactly, NULL);
        g_assert_cmpint(actor_join(holder), ==, 0);
        paths_free(monitors, COUNTERS);
}

/* One monitor per counter: as many stop as the hold has counters, those of lowest priority
 * first. */
static void test_partial(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        char *monitors[COUNTERS];

        for (unsigned i = 0; i < COUNTERS; i++)
                monitors[i] = cycles_monitor(root, 10 + (i * 3) % COUNTERS);
        for (uint32_t n = 1; n <= GENERAL; n++) {
                g_autofree char *hold = NULL;
                _cleanup_close_ int lease = -1;

                hold = hold_take(alice, &lease, "a{sv}", 1, "counters", "u", n);
                g_assert_true(hold_wait(alice, hold));
                for (int cpu = 0; cpu < 2; cpu++)
                        g_assert_cmpuint(free_on(cpu), ==, n);
                for (unsigned i = 0; i < COUNTERS; i++) {
                        bool yields = (i * 3) % COUNTERS < n;

                        g_assert_true(
                                counter_is(root, monitors[i], yields ? "yielded" : "counting"));
                }
                hold_release(alice, hold);
                g_assert_cmpuint(free_on(0), ==, 0);
        }
        paths_free(monitors, COUNTERS);
}

static void test_partial_leaves_others_exact(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        char *monitors[COUNTERS];
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        for (unsigned i = 0; i < COUNTERS; i++)
                monitors[i] = cycles_monitor(root, i);
        hold = hold_take(alice, &lease, "a{sv}", 1, "counters", "u", (uint32_t) 3);
        g_assert_true(hold_wait(alice, hold));
        for (unsigned i = 3; i < COUNTERS; i++) {
                g_auto(Measured) before = counter_read(root, monitors[i]);

                await(counter_value(root, monitors[i]) > before.value);
                g_assert_cmpstr(before.quality, ==, "exact");
        }
        paths_free(monitors, COUNTERS);
}

/* One hold has five of six: two more do not fit, one does. */
static void test_beyond_capacity(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *five = NULL, *one = NULL;
        _cleanup_close_ int a = -1, b = -1;

        five = hold_take(alice, &a, "a{sv}", 1, "counters", "u", (uint32_t) 5);
        g_assert_true(hold_wait(alice, five));
        client_refused(root, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "in vain", 1,
                       "counters", "u", (uint32_t) 2);
        one = hold_take(root, &b, "a{sv}", 1, "counters", "u", (uint32_t) 1);
        g_assert_true(hold_wait(root, one));
        client_refused(root, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "Hold", "sa{sv}", "in vain", 1,
                       "counters", "u", (uint32_t) (GENERAL + 1));
}

/* Six that take general counters: of a hold of one, one gives way, and the holder counts. */
static void test_general_monitors(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        char *monitors[GENERAL];
        g_autofree char *hold = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;
        unsigned yielded = 0;

        for (unsigned i = 0; i < GENERAL; i++)
                monitors[i] = counter_open(root, "instructions", "a{sv}", 3, "scope", "s", "cpu",
                                           "role", "s", "monitor", "priority", "u", i);
        hold = hold_take(alice, &lease, "a{sv}", 1, "counters", "u", (uint32_t) 1);
        g_assert_true(hold_wait(alice, hold));
        for (unsigned i = 0; i < GENERAL; i++)
                yielded += counter_is(root, monitors[i], "yielded");
        g_assert_cmpuint(yielded, ==, 1);
        g_assert_true(counter_is(root, monitors[0], "yielded"));
        counter = counter_open(alice, "instructions", "a{sv}", 1, "scope", "s", "cpu");
        await(counter_value(alice, counter) > 0);
        {
                g_auto(Measured) m = counter_read(alice, counter);

                g_assert_cmpstr(m.quality, ==, "exact");
        }
        paths_free(monitors, GENERAL);
}

/* What the counter has counted on a CPU, and for how long. */
static EventTimes read_cpu(Client *c, const char *path, int cpu) {
        g_autoptr(sd_bus_message) reply = client_call(c, path, COUNTER, "ReadEach", NULL);
        const char *quality;
        EventTimes t = {};
        int32_t is;
        uint32_t tid;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(iuttts)"), >, 0);
        while (sd_bus_message_read(reply, "(iuttts)", &is, &tid, &t.value, &t.enabled, &t.running,
                                   &quality) > 0)
                if (is == cpu)
                        return t;
        g_error("nothing is told of CPU %d", cpu);
}

/* A hold of CPU 0 takes nothing on CPU 1. */
static void test_one_cpu(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *monitor = cycles_monitor(root, 0), *hold = NULL;
        EventTimes held, before, after;
        int lease;

        hold = hold_take(alice, &lease, "a{sv}", 1, "cpus", "s", "0");
        g_assert_true(hold_wait(alice, hold));
        g_assert_true(counter_is(root, monitor, "counting"));
        g_assert_cmpuint(free_on(0), ==, COUNTERS);
        g_assert_cmpuint(free_on(1), ==, COUNTERS - 1);
        /* from here: the test's own measurement has taken turns with the monitor */
        held = read_cpu(root, monitor, 0);
        before = read_cpu(root, monitor, 1);
        await(read_cpu(root, monitor, 1).value > before.value);
        after = read_cpu(root, monitor, 1);
        g_assert_cmpuint(after.running - before.running, ==, after.enabled - before.enabled);
        g_assert_cmpuint(read_cpu(root, monitor, 0).value, ==, held.value);
        close_fd(lease);
        await(read_cpu(root, monitor, 0).value > held.value);
        g_assert_cmpuint(read_cpu(root, monitor, 1).value, >=, after.value);
}

/* On a CPU that the hold does not cover nothing is pinned: that would end others' pinned events. */
static void test_pinned_where_held(void) {
        Stranger s = { .kind = INSTRUCTIONS, .cpu = 1, .n = GENERAL, .pinned = true, .own = true };
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL, *counter = NULL;
        g_autoptr(Actor) stranger = NULL;
        _cleanup_close_ int lease = -1;

        hold = hold_take(alice, &lease, "a{sv}", 1, "cpus", "s", "0");
        g_assert_true(hold_wait(alice, hold));
        cpus_can_be_taken(true);
        threads_keep_off(1);
        stranger = stranger_new(&s);
        counter = counter_open(alice, "instructions", "a{sv}", 1, "scope", "s", "cpu");
        stranger_assert_alive(stranger, true);
        threads_keep_off(-1);
        cpus_can_be_taken(false);
}

static void attach(Client *c, const char *counter, pid_t pid, bool descendants) {
        sd_bus_message_unref(client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                         (uint32_t) pid, 2, "procfd", "h", client_proof(c, pid),
                                         "descendants", "b", descendants));
}

/* A holder's counter without a process is not pinned when it is to be inherited; else it is. */
static void test_pinned_unless_inherited(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) worker = worker_new("alice"), other = worker_new("alice");
        g_autofree char *hold = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;

        hold = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(alice, hold));
        counter = counter_open(alice, "instructions:u", "a{sv}", 2, "attach", "b", false, "start",
                               "b", false);
        attach(alice, counter, worker->pid, true);
        counter_do(alice, counter, "Start");
        worker_burn(worker, 1);
        g_assert_cmpuint(counter_value(alice, counter), >, 0);
        counter_do(alice, counter, "Stop");
        sd_bus_message_unref(
                client_call(alice, counter, COUNTER, "DetachProcess", "u", (uint32_t) worker->pid));
        attach(alice, counter, worker->pid, false);
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) other->pid, 2, "procfd", "h",
                       client_proof(alice, other->pid), "descendants", "b", true);
        g_assert_nonnull(strstr(alice->refusal, "is pinned"));
}

static bool has_run(Client *c, const char *counter, uint64_t since) {
        g_auto(Measured) m = counter_read(c, counter);

        return m.running > since;
}

/* Then others come to their turn again, and what the holder had open goes on beside them. */
static void test_pinned_as_long_as_held(void) {
        static const char *const six[] = { "instructions", "instructions", "instructions",
                                           "instructions", "instructions", "instructions" };

        for (unsigned killed = 0; killed < 2; killed++) {
                g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
                g_autofree char *hold = NULL, *other = NULL;
                char *held[G_N_ELEMENTS(six)];
                uint64_t value;
                int lease;

                hold = hold_take(alice, &lease, "a{sv}", 1, "cpus", "s", "0");
                g_assert_true(hold_wait(alice, hold));
                counters_open_group(alice, six, G_N_ELEMENTS(six), held, "a{sv}", 3, "scope", "s",
                                    "cpu", "cpus", "s", "0", "group", "b", 1);
                other = counter_open(root, six[0], "a{sv}", 2, "scope", "s", "cpu", "cpus", "s",
                                     "0");
                g_assert_false(has_run(root, other, 0));
                if (killed)
                        service_kill(root);
                burn_aside();
                g_assert_false(has_run(root, other, 0));
                value = counter_value(alice, held[5]);
                close_fd(lease);
                await(has_run(root, other, 0));
                await(counter_value(alice, held[5]) > value);
                for (size_t i = 0; i < G_N_ELEMENTS(six); i++)
                        counter_do(alice, held[i], "Close");
                counter_do(root, other, "Close");
                paths_free(held, G_N_ELEMENTS(six));
        }
}

/* A group is pinned where its hardware events are held, also behind or before an event that needs
 * no hold, and as long as that hold stands, whichever other one ends. */
static void test_pinned_beside_software(void) {
        static const char *const events[] = { "task-clock",   "instructions", "instructions",
                                              "instructions", "instructions", "instructions",
                                              "instructions", "task-clock" };

        for (size_t first = 0; first < 2; first++) {
                g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
                g_autofree char *hold = NULL, *short_one = NULL, *other = NULL;
                _cleanup_close_ int lease = -1;
                char *held[GENERAL + 1];
                int short_lease;

                hold = hold_take(alice, &lease, "a{sv}", 1, "cpus", "s", "0");
                g_assert_true(hold_wait(alice, hold));
                counters_open_group(alice, events + first, GENERAL + 1, held, "a{sv}", 3, "scope",
                                    "s", "cpu", "cpus", "s", "0", "group", "b", 1);
                other = counter_open(root, "instructions", "a{sv}", 2, "scope", "s", "cpu", "cpus",
                                     "s", "0");
                burn_aside();
                g_assert_false(has_run(root, other, 0));
                short_one = hold_take(root, &short_lease, "a{sv}", 1, "cpus", "s", "1");
                g_assert_true(hold_wait(root, short_one));
                close_fd(short_lease);
                await(hold_is(root, short_one, "ended"));
                burn_aside();
                g_assert_false(has_run(root, other, 0));
                await(counter_value(alice, held[1]) > 0);
                paths_free(held, GENERAL + 1);
        }
}

static void test_exclusive(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *hold = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;

        hold = hold_take(alice, &lease, "a{sv}", 1, "mode", "s", "exclusive");
        g_assert_true(hold_wait(alice, hold));
        client_refused(root, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1, "cycles",
                       1, "scope", "s", "cpu");
        counter = counter_open(alice, "cycles", "a{sv}", 1, "scope", "s", "cpu");
        g_assert_true(counter_is(alice, counter, "counting"));
        g_assert_cmpuint(free_on(0), ==, COUNTERS - 1);
}

/* The service may hear of the CPU after the hold, and its monitors' parts are opened anew there;
 * what a stranger had on it is gone. */
static void test_cpu_came(void) {
        static const Stranger pinned = { .cpu = SWITCHED_CPU, .n = 2, .pinned = true };
        g_autoptr(Client) root = client_new("root");
        char *monitors[COUNTERS];

        for (size_t i = 0; i < COUNTERS; i++)
                monitors[i] = cycles_monitor(root, 0);
        for (unsigned i = 0; i < 2 * COUNTERS; i++) {
                g_autoptr(Actor) stranger = i % 3 == 0 ? stranger_new(&pinned) : NULL;
                g_autofree char *hold = NULL;
                int lease;

                cpu_must_switch(false);
                if (i % 2)
                        client_greet(root);
                cpu_must_switch(true);
                hold = hold_take(root, &lease, "a{sv}", 1, "counters", "u", (uint32_t) i / 2);
                g_assert_true(hold_wait(root, hold));
                close_fd(lease);
                await(hold_is(root, hold, "ended"));
        }
        paths_free(monitors, COUNTERS);
}

/* The journal tells of each hold that it granted where there is no other CPU to look from. */
static void assert_probed_from_itself(unsigned n) {
        g_autofree char *log = NULL;

        g_assert_true(g_spawn_command_line_sync("journalctl -q -b -u perfallocd.service -o cat",
                                                &log, NULL, NULL, NULL));
        for (const char *p = log; (p = strstr(p, "not every CPU could be probed from another"));
             p++)
                n--;
        g_assert_cmpuint(n, ==, 0);
}

static void test_last_cpu(void) {
        g_autoptr(Client) root = client_new("root");

        for (unsigned i = 0; i < 3; i++) {
                g_autofree char *hold = NULL;
                int lease;

                cpu_must_switch(i % 2 == 0);
                hold = hold_take(root, &lease, "a{sv}", 0);
                g_assert_true(hold_wait(root, hold));
                close_fd(lease);
                await(hold_is(root, hold, "ended"));
                assert_probed_from_itself(i > 0);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/hold/all-counters-are-taken-from-monitors-and-given-back",
                        test_default_hold);
        g_test_add_func("/hold/a-group-of-seven-counts-exactly", test_holder_counts_exactly);
        g_test_add_func("/hold/n-counters-stop-n-monitors-of-lowest-priority", test_partial);
        g_test_add_func("/hold/monitors-that-need-not-stop-stay-exact",
                        test_partial_leaves_others_exact);
        g_test_add_func("/hold/no-more-are-promised-than-there-are", test_beyond_capacity);
        g_test_add_func("/hold/monitors-of-general-counters-make-room", test_general_monitors);
        g_test_add_func("/hold/of-one-cpu-leaves-the-others-alone", test_one_cpu);
        g_test_add_func("/hold/nothing-is-pinned-beyond-its-cpus", test_pinned_where_held);
        g_test_add_func("/hold/nothing-is-pinned-that-is-inherited", test_pinned_unless_inherited);
        g_test_add_func("/hold/nothing-is-pinned-for-longer-than-it-stands",
                        test_pinned_as_long_as_held);
        g_test_add_func("/hold/software-events-of-a-group-need-no-hold",
                        test_pinned_beside_software);
        g_test_add_func("/hold/exclusive-keeps-others-out", test_exclusive);
        g_test_add_func("/hold/right-after-a-cpu-came", test_cpu_came);
        g_test_add_func("/hold/of-the-last-cpu-says-how-it-was-probed", test_last_cpu);
        return g_test_run();
}
