/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * CPUs that go offline and come back while the service is down, for counters in every state: their
 * counts stay, and they go on. A CPU is really switched off.
 */

#include "cpu-switch.h"
#include "event-util.h"
#include "restart-util.h"

#include <sched.h>
#include <sys/stat.h>

#define ON_CPU      "scope", "s", "cpu", "cpus", "s", "1"
#define SLOTS       4
#define CONFIGURED  "/etc/perfalloc/monitors.d/cpu.conf"
#define BOTH_PMUS   "pmus", "as", 2, "breakpoint", "software"
#define VALUE       10
#define VALUE_AFTER 15

/* What happens to the CPU, and to the service. */
typedef struct Trip {
        const char *restart;
        bool off_before,
                on_after; /* both false: it goes and comes back while the service is down */
} Trip;

typedef void (*Test)(const Trip *trip);

/* The service does not see what happens from here on, before it is killed. To end by SIGTERM it has
 * to run. */
static void go(const Trip *trip) {
        if (trip->off_before)
                cpu_must_switch(false);
        if (strcmp(trip->restart, KILLED) == 0)
                rig("service-signal STOP", NULL);
        if (!trip->off_before)
                cpu_must_switch(false);
        if (!trip->on_after)
                cpu_must_switch(true);
        rig(trip->restart, NULL);
}

static void come_back(const Trip *trip) {
        if (trip->on_after)
                cpu_must_switch(true);
}

/* Writes to watched[0] on the CPU. */
static void cpu_write(unsigned n) {
        cpu_set_t all, one;

        CPU_ZERO(&one);
        CPU_SET(SWITCHED_CPU, &one);
        g_assert_cmpint(sched_getaffinity(0, sizeof(all), &all), ==, 0);
        g_assert_cmpint(sched_setaffinity(0, sizeof(one), &one), ==, 0);
        watched_write(0, n);
        g_assert_cmpint(sched_setaffinity(0, sizeof(all), &all), ==, 0);
}

/* The number of free breakpoints of the CPU. */
static unsigned slots_free(void) {
        int fds[SLOTS];
        unsigned n = 0;

        while (n < SLOTS && (fds[n] = breakpoint_open(-1, SWITCHED_CPU)) >= 0)
                n++;
        for (unsigned i = 0; i < n; i++)
                close_fd(fds[i]);
        return n;
}

static void exact(Client *c, const char *counter, uint64_t n_writes) {
        g_auto(Measured) m = counter_read(c, counter);

        g_assert_cmpuint(m.value, ==, hits(n_writes));
        g_assert_cmpstr(m.quality, ==, "exact");
}

/* It is there again, goes on, and then it ends. */
static void goes_on(Client *c, const char *counter) {
        await(slots_free() == SLOTS - 1);
        (void) counter_value(c, counter); /* what opens it starts it before it answers */
        cpu_write(VALUE_AFTER - VALUE);
        exact(c, counter, VALUE_AFTER);
}

static void test_counting(const Trip *trip) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *event = watched_event(0),
                        *counter = counter_open(root, event, "a{sv}", 2, ON_CPU);

        cpu_write(VALUE);
        go(trip);
        g_assert_cmpuint(counter_value(root, counter), ==, hits(VALUE));
        come_back(trip);
        goes_on(root, counter);
        counter_do(root, counter, "Close");
}

static void test_stopped(const Trip *trip) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *event = watched_event(0),
                        *counter = counter_open(root, event, "a{sv}", 2, ON_CPU);

        cpu_write(VALUE);
        counter_do(root, counter, "Stop");
        go(trip);
        g_assert_true(counter_is(root, counter, "stopped"));
        g_assert_cmpuint(counter_value(root, counter), ==, hits(VALUE));
        come_back(trip);
        await(slots_free() == SLOTS - 1);
        counter_do(root, counter, "Start");
        goes_on(root, counter);
        counter_do(root, counter, "Close");
}

static void test_cgroup(const Trip *trip) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *event = watched_event(0), *counter = NULL;
        _cleanup_close_ int cgroup = cgroup_open();

        if (cgroup < 0)
                return g_test_skip("no cgroup file system here");
        counter = counter_open(root, event, "a{sv}", 3, "scope", "s", "cgroup", "cgroup", "h",
                               cgroup, "cpus", "s", "1");
        cpu_write(VALUE);
        go(trip);
        g_assert_cmpuint(counter_value(root, counter), ==, hits(VALUE));
        come_back(trip);
        goes_on(root, counter);
        counter_do(root, counter, "Close");
}

/* One that is closed, and one that is disabled, to yield. */
static void test_yielded(const Trip *trip) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *event = watched_event(0),
                        *closing = counter_open(root, event, "a{sv}", 3, ON_CPU, "role", "s",
                                                "monitor"),
                        *disabled = counter_open(root, "cpu-clock", "a{sv}", 3, ON_CPU, "role", "s",
                                                 "monitor"),
                        *hold = NULL;
        uint64_t clock;
        int lease;

        cpu_write(VALUE);
        hold = hold_take(alice, &lease, "a{sv}", 1, BOTH_PMUS);
        g_assert_true(hold_wait(alice, hold));
        clock = counter_value(root, disabled);
        go(trip);
        come_back(trip);
        g_assert_true(counter_is(root, closing, "yielded"));
        g_assert_true(counter_is(root, disabled, "yielded"));
        g_assert_cmpuint(counter_value(root, closing), ==, hits(VALUE));
        g_assert_cmpuint(counter_value(root, disabled), ==, clock);
        g_assert_cmpuint(slots_free(), ==, SLOTS);
        close_fd(lease);
        await(counter_is(root, closing, "counting"));
        await(counter_is(root, disabled, "counting"));
        goes_on(root, closing);
        await(counter_value(root, disabled) > clock);
        counter_do(root, closing, "Close");
        counter_do(root, disabled, "Close");
}

/* ---- monitors of monitors.d ---- */

/* The counter of that name, NULL when there is none. */
static char *counter_named(Client *c, const char *name) {
        g_autoptr(sd_bus_message) reply =
                client_call(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", NULL);
        char *found = NULL;
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), >, 0);
        while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                g_autofree char *is = NULL;

                g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
                is = object_read(reply, COUNTER, "Name");
                if (!found && g_strcmp0(is, name) == 0)
                        found = g_strdup(path);
                g_assert_cmpint(sd_bus_message_exit_container(reply), >=, 0);
        }
        return found;
}

static bool is_confirmed(Client *c, const char *hold) {
        return client_get_number(c, hold, HOLD, "Confirmed", 'b') != 0;
}

/* Has a breakpoint that takes a counter of every CPU. */
static int play_stranger(int fd, const void *data) {
        _cleanup_close_ int stranger = breakpoint_open(0, -1);

        if (stranger < 0)
                return 1;
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

/* On a CPU that has come back, a hold is confirmed beside what its holder has open there, and not
 * before a stranger has left. */
static void test_held(const Trip *trip) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) stranger = NULL;
        _cleanup_close_ int lease = -1;
        g_autofree char *event = watched_event(0), *counter = NULL,
                        *hold = hold_take(root, &lease, "a{sv}", 1, BREAKPOINTS);

        g_assert_true(hold_wait(root, hold));
        counter = counter_open(root, event, "a{sv}", 2, ON_CPU);
        stranger = actor_new("alice", play_stranger, NULL);
        g_assert_cmpint(actor_hear(stranger), ==, 'o');
        go(trip);
        come_back(trip);
        await(!is_confirmed(root, hold));
        rig(KILLED, NULL);
        g_assert_false(is_confirmed(root, hold));
        g_assert_cmpint(actor_join(stranger), ==, 0);
        await(is_confirmed(root, hold));
        counter_do(root, counter, "Close");
        lease = close_fd(lease);
        await(hold_is(root, hold, "ended"));
}

static bool finds_named(Client *c, const char *name) {
        g_autofree char *path = counter_named(c, name);

        return path != NULL;
}

static void test_configured(const Trip *trip) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *event = watched_event(0), *before = NULL, *after = NULL,
                        *text = g_strdup_printf("[Monitor]\nEvents=%s\nCpus=%u\n", event,
                                                SWITCHED_CPU);

        g_assert_true(g_file_set_contents(CONFIGURED, text, -1, NULL));
        g_assert_cmpint(chmod(CONFIGURED, 0644), ==, 0);
        rig("service-signal HUP", NULL);
        await(finds_named(root, "cpu"));
        before = counter_named(root, "cpu");
        cpu_write(VALUE);
        go(trip);
        after = counter_named(root, "cpu");
        g_assert_cmpstr(after, ==, before);
        g_assert_cmpuint(counter_value(root, after), ==, hits(VALUE));
        come_back(trip);
        goes_on(root, after);
        g_assert_cmpint(unlink(CONFIGURED), ==, 0);
        rig("service-signal HUP", NULL);
        await(!finds_named(root, "cpu"));
}

/* ---- */

static void test_run(const void *data) {
        static const Trip trips[] = {
                { .restart = KILLED },
                { .restart = KILLED, .on_after = true },
                { .restart = KILLED, .off_before = true },
                { .restart = RESTARTED },
                { .restart = RESTARTED, .on_after = true },
                { .restart = RESTARTED, .off_before = true },
        };
        const Test *test = data;

        if (n_cpus() < 2 || !cpu_switch(true))
                return g_test_skip("no CPU can be switched off here");
        for (size_t i = 0; i < G_N_ELEMENTS(trips); i++) {
                if (!cpu_switch(false) || !cpu_switch(true))
                        return g_test_skip("no CPU can be switched off here");
                (*test)(&trips[i]);
        }
}

int main(int argc, char *argv[]) {
        static const struct {
                const char *path;
                Test test;
        } tests[] = {
                { "counting", test_counting }, { "stopped", test_stopped },
                { "cgroup", test_cgroup },     { "yielded", test_yielded },
                { "held", test_held },         { "configured", test_configured },
        };

        g_test_init(&argc, &argv, NULL);
        cpu_back_at_end();
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/restart-cpus/", tests[i].path, NULL);

                g_test_add_data_func(path, &tests[i].test, test_run);
        }
        return g_test_run();
}
