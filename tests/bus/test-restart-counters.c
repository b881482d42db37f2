/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters when the service is started anew, after SIGTERM as by systemctl restart, and when it was
 * killed. */

#include "event-util.h"

#define BOTH "pmus", "as", 2, "breakpoint", "software"

/* A way to restart. */
static const char *const ways[] = { "service-restart", "service-kill --again" };

typedef void (*Test)(const char *restart);

static int play_writer(int fd, const void *data) {
        while (act_hear(fd)) {
                watched_write(0, 100);
                act_say(fd, 'w');
        }
        return 0;
}

static void writer_write(Actor *a) {
        actor_tell(a, 'w');
        g_assert_cmpint(actor_hear(a), ==, 'w');
}

static char *counter_of(Client *c, pid_t pid) {
        g_autofree char *event = watched_event(0);

        return counter_open(c, event, "a{sv}", 1, "pid", "u", (uint32_t) pid);
}

/* What happens from here on the service does not see before it is killed. To be asked to end it has
 * to run. */
static void stop_seeing(const char *restart) {
        if (strcmp(restart, ways[0]) != 0)
                rig("service-signal STOP", NULL);
}

static void exact(Client *c, const char *counter, uint64_t value) {
        g_auto(Measured) m = counter_read(c, counter);

        g_assert_cmpuint(m.value, ==, value);
        g_assert_cmpstr(m.quality, ==, "exact");
}

static unsigned stored(void) {
        g_autofree char *out = NULL;

        g_assert_true(g_spawn_command_line_sync("service-stored", &out, NULL, NULL, NULL));
        return (unsigned) g_ascii_strtoull(out, NULL, 10);
}

/* ---- values ---- */

static void test_values_go_on(const char *restart) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(Actor) writer = actor_new("alice", play_writer, NULL);
        g_autofree char *counter = counter_of(alice, writer->pid);

        writer_write(writer);
        exact(alice, counter, 100);
        stop_seeing(restart);
        writer_write(writer);
        rig(restart, NULL);
        exact(alice, counter, 200);
        writer_write(writer);
        exact(alice, counter, 300);
        g_assert_true(counter_is(alice, counter, "counting"));
        g_assert_cmpuint(client_get_number(alice, counter, COUNTER, "Uid", 'u'), ==,
                         user_id("alice"));
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, counter, COUNTER, "Read", NULL);
        counter_do(alice, counter, "Close");
        g_assert_false(client_finds(alice, counter, COUNTER));
}

static void test_start_stop_and_reset_hold(const char *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = actor_new("alice", play_writer, NULL);
        g_autofree char *counter = counter_of(alice, writer->pid);

        writer_write(writer);
        counter_do(alice, counter, "Stop");
        rig(restart, NULL);
        g_assert_true(counter_is(alice, counter, "stopped"));
        writer_write(writer);
        exact(alice, counter, 100);
        counter_do(alice, counter, "Start");
        rig(restart, NULL);
        writer_write(writer);
        exact(alice, counter, 200);
        counter_do(alice, counter, "Reset");
        rig(restart, NULL);
        writer_write(writer);
        exact(alice, counter, 100);
        counter_do(alice, counter, "Close");
}

static void test_groups_go_on(const char *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *first = watched_event(0), *second = watched_event(1);
        g_autoptr(sd_bus_message) reply =
                client_call(alice, MANAGER, "OpenCounters", "asa{sv}", 2, first, second, 2, "group",
                            "b", true, "name", "s", "both");
        const char *a, *b;

        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &a, &b), >, 0);
        watched_write(0, 10);
        watched_write(1, 20);
        rig(restart, NULL);
        watched_write(0, 1);
        watched_write(1, 2);
        exact(alice, a, 11);
        exact(alice, b, 22);
        g_assert_true(client_reads(alice, b, COUNTER, "Name", "both"));
        counter_do(alice, a, "Close");
        rig(restart, NULL);
        g_assert_false(client_finds(alice, a, COUNTER));
        watched_write(1, 2);
        exact(alice, b, 24);
        counter_do(alice, b, "Close");
}

static void test_target_that_ended_meanwhile(const char *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = actor_new("alice", play_writer, NULL);
        g_autofree char *counter = counter_of(alice, writer->pid);

        writer_write(writer);
        stop_seeing(restart);
        g_assert_cmpint(actor_join(writer), ==, 0);
        rig(restart, NULL);
        exact(alice, counter, 100);
        counter_do(alice, counter, "Close");
}

static void test_processes_are_attached_and_detached(const char *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = actor_new("alice", play_writer, NULL),
                         two = actor_new("alice", play_writer, NULL);
        g_autofree char *counter = counter_of(alice, one->pid);

        counter_do(alice, counter, "Stop");
        sd_bus_message_unref(client_call(alice, counter, COUNTER, "AttachProcess", "ua{sv}",
                                         (uint32_t) two->pid, 0));
        counter_do(alice, counter, "Start");
        writer_write(one);
        writer_write(two);
        rig(restart, NULL);
        counter_do(alice, counter, "Stop");
        client_refused(alice, PERFALLOC_ERROR_ALREADY_ATTACHED, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) two->pid, 0);
        sd_bus_message_unref(
                client_call(alice, counter, COUNTER, "DetachProcess", "u", (uint32_t) one->pid));
        counter_do(alice, counter, "Start");
        rig(restart, NULL);
        writer_write(one);
        writer_write(two);
        exact(alice, counter, 300);
        counter_do(alice, counter, "Close");
}

/* ---- who they belong to ---- */

static void test_client_that_left_meanwhile_is_noticed(const char *restart) {
        g_autoptr(Client) root = client_new("root");
        Client *alice = client_new("alice");
        g_autofree char *counter = counter_open(alice, "page-faults:u", "a{sv}", 0),
                        *persistent = counter_open(alice, "page-faults:u", "a{sv}", 1, "persistent",
                                                   "b", true);

        stop_seeing(restart);
        client_free(alice);
        rig(restart, NULL);
        await(!client_finds(root, counter, COUNTER));
        g_assert_true(client_finds(root, persistent, COUNTER));
        counter_do(root, persistent, "Close");
}

static void test_readers_stay_readers(const char *restart) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol"),
                          root = client_new("root");
        g_autofree char *counter = counter_open(alice, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu",
                                                "persistent", "b", true);
        g_autofree char *id = client_get(alice, counter, COUNTER, "Id");
        Client *owner = alice;

        sd_bus_message_unref(client_call(carol, MANAGER, "OpenPersistent", "s", id));
        rig(restart, NULL);
        (void) counter_value(carol, counter);
        client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, counter, COUNTER, "Stop", NULL);
        g_assert_true(client_reads(alice, counter, COUNTER, "Id", id));
        /* and keep what was adopted */
        counter_do(alice, counter, "Adopt");
        rig(restart, NULL);
        alice = NULL;
        client_free(owner);
        (void) counter_value(carol, counter);
        client_free(carol);
        carol = NULL;
        await(!client_finds(root, counter, COUNTER));
}

static uint64_t descriptor_value(int fd) {
        uint64_t data[3]; /* with both times */

        g_assert_cmpint(read(fd, data, sizeof(data)), ==, sizeof(data));
        return data[0];
}

static void test_descriptors_of_clients_stay_good(const char *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0),
                        *counter = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(sd_bus_message) reply = client_call(alice, counter, COUNTER, "GetFds", NULL);
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "ah", 1, &fd), >, 0);
        /* it is the client's now to stop it */
        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), ==, 0);
        rig(restart, NULL);
        watched_write(0, 10);
        g_assert_cmpuint(descriptor_value(fd), ==, 0);
        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        watched_write(0, 10);
        g_assert_cmpuint(descriptor_value(fd), ==, 10);
        exact(alice, counter, 10);
        counter_do(alice, counter, "Stop");
        client_refused(alice, PERFALLOC_ERROR_NOT_PERMITTED, counter, COUNTER, "AttachProcess",
                       "ua{sv}", 1, 0);
        counter_do(alice, counter, "Close");
}

/* A leader that was opened before may still have somebody join. */
static void test_raw_leaders_are_remembered(const char *restart) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        PerfAttr first = breakpoint_attr(0), second = breakpoint_attr(1);
        int leader = raw_open(alice, (Raw){ .attr = &first, .cpu = -1 }, "a{sv}", 0), fd;

        rig(restart, NULL);
        rig(restart, NULL);
        fd = raw_open(alice, (Raw){ .attr = &second, .cpu = -1 }, "a{sv}", 1, "group", "h", leader);
        raw_refused(bob, PERFALLOC_ERROR_BAD_DESCRIPTOR, "group",
                    (Raw){ .attr = &second, .cpu = -1 }, "a{sv}", 1, "group", "h", leader);
        close_fd(fd);
        close_fd(leader);
}

static void test_limits_count_what_was_there(const char *restart) {
        Client *alice;
        char *counter;

        rig_configure("[Limits]\nCountersPerUser=2\n");
        alice = client_new("alice");
        counter = counter_open(alice, "page-faults:u", "a{sv}", 0);
        g_free(counter_open(alice, "page-faults:u", "a{sv}", 0));
        rig(restart, NULL);
        client_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults:u", 0);
        counter_do(alice, counter, "Close");
        g_free(counter);
        g_free(counter_open(alice, "page-faults:u", "a{sv}", 0));
        client_free(alice);
        rig_configure("");
}

/* ---- yielding ---- */

static unsigned breakpoints_free(void) {
        int fds[8];
        unsigned n = 0;

        while (n < G_N_ELEMENTS(fds) && (fds[n] = breakpoint_open(-1, 0)) >= 0)
                n++;
        for (unsigned i = 0; i < n; i++)
                close_fd(fds[i]);
        return n;
}

typedef struct Monitors {
        char *closing, *disabled; /* what they do to yield */
} Monitors;

static Monitors monitors_open(Client *c) {
        return (Monitors){ monitor_open(c, 0, 1),
                           counter_open(c, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "role",
                                        "s", "monitor") };
}

static void monitors_close(Monitors *m, Client *c) {
        counter_do(c, m->closing, "Close");
        counter_do(c, m->disabled, "Close");
        g_free(m->closing);
        g_free(m->disabled);
}

static void assert_yielded(Client *c, const Monitors *m, uint64_t closing, uint64_t disabled) {
        g_assert_true(counter_is(c, m->closing, "yielded"));
        g_assert_true(counter_is(c, m->disabled, "yielded"));
        g_assert_cmpuint(breakpoints_free(), ==, 4);
        g_assert_cmpuint(counter_value(c, m->closing), ==, closing);
        g_assert_cmpuint(counter_value(c, m->disabled), ==, disabled);
}

static void test_monitors_stay_yielded_and_resume(const char *restart) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        Monitors m = monitors_open(root);
        g_autofree char *hold = NULL;
        uint64_t disabled;
        int lease;

        watched_write(0, 10);
        hold = hold_take(alice, &lease, "a{sv}", 1, BOTH);
        g_assert_true(hold_wait(alice, hold));
        disabled = counter_value(root, m.disabled);
        g_assert_cmpuint(disabled, >, 0);
        for (int i = 0; i < 2; i++) {
                watched_write(0, 100);
                assert_yielded(root, &m, 10, disabled);
                rig(restart, NULL);
                assert_yielded(root, &m, 10, disabled);
        }
        close_fd(lease);
        await(counter_is(root, m.closing, "counting"));
        await(counter_is(root, m.disabled, "counting"));
        g_assert_cmpuint(breakpoints_free(), ==, 3);
        watched_write(0, 5);
        exact(root, m.closing, 15);
        await(counter_value(root, m.disabled) > disabled);
        monitors_close(&m, root);
}

static void test_hold_that_ended_meanwhile_has_them_resume(const char *restart) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        Monitors m = monitors_open(root);
        g_autofree char *hold = NULL;
        uint64_t disabled;
        int lease;

        watched_write(0, 10);
        hold = hold_take(alice, &lease, "a{sv}", 1, BOTH);
        g_assert_true(hold_wait(alice, hold));
        disabled = counter_value(root, m.disabled);
        stop_seeing(restart);
        close_fd(lease);
        rig(restart, NULL);
        await(counter_is(root, m.closing, "counting"));
        await(counter_is(root, m.disabled, "counting"));
        watched_write(0, 5);
        exact(root, m.closing, 15);
        await(counter_value(root, m.disabled) > disabled);
        monitors_close(&m, root);
}

/* Its monitor is what was there before, so it is known to give way. */
static void test_restored_monitors_yield(const char *restart) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        Monitors m = monitors_open(root);
        g_autofree char *hold = NULL;
        int lease;

        watched_write(0, 10);
        rig(restart, NULL);
        watched_write(0, 10);
        hold = hold_take(alice, &lease, "a{sv}", 1, BOTH);
        g_assert_true(hold_wait(alice, hold));
        assert_yielded(root, &m, 20, counter_value(root, m.disabled));
        close_fd(lease);
        await(counter_is(root, m.closing, "counting"));
        watched_write(0, 1);
        exact(root, m.closing, 21);
        monitors_close(&m, root);
}

/* ---- CPUs ---- */

#define CPU_SWITCH "/sys/devices/system/cpu/cpu1/online"

static bool cpu_switch(bool online) {
        int fd = open(CPU_SWITCH, O_WRONLY | O_CLOEXEC);
        bool done = fd >= 0 && write(fd, online ? "1" : "0", 1) == 1;

        close_fd(fd);
        return done;
}

/* Its events look as before, and never count again. */
static void test_cpu_that_was_away_meanwhile(const char *restart) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *counter = NULL;
        g_auto(Measured) before = {}, after = {};

        if (n_cpus() < 2 || !cpu_switch(true)) {
                g_test_skip("no CPU can be switched off here");
                return;
        }
        counter =
                counter_open(root, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "cpus", "s", "1");
        stop_seeing(restart);
        if (!cpu_switch(false) || !cpu_switch(true))
                g_test_skip("no CPU can be switched off here");
        rig(restart, NULL);
        before = counter_read(root, counter);
        await(counter_value(root, counter) > before.value);
        after = counter_read(root, counter);
        g_assert_cmpuint(after.enabled, >, before.enabled);
        counter_do(root, counter, "Close");
}

/* ---- many ---- */

static void test_nothing_piles_up(const char *restart) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        Monitors m = monitors_open(root);
        char *counters[100];
        unsigned descriptors, kept;

        for (size_t i = 0; i < G_N_ELEMENTS(counters); i++)
                counters[i] = counter_open(alice, "page-faults:u", "a{sv}", 0);
        rig(restart, NULL);
        descriptors = service_descriptors();
        kept = stored();
        for (int round = 0; round < 10; round++) {
                g_autofree char *hold = NULL;
                int lease;

                rig(restart, NULL);
                hold = hold_take(alice, &lease, "a{sv}", 1, BOTH);
                g_assert_true(hold_wait(alice, hold));
                close_fd(lease);
                await(counter_is(root, m.closing, "counting"));
        }
        rig(restart, NULL);
        await(service_descriptors() <= descriptors);
        g_assert_cmpuint(stored(), <=, kept + 1); /* a shelf that is being filled */
        for (size_t i = 0; i < G_N_ELEMENTS(counters); i++) {
                counter_do(alice, counters[i], "Close");
                g_free(counters[i]);
        }
        monitors_close(&m, root);
        g_assert_cmpuint(breakpoints_free(), ==, 4);
}

/* ---- */

static void test_run(const void *data) {
        const Test *test = data;

        for (size_t i = 0; i < G_N_ELEMENTS(ways); i++)
                (*test)(ways[i]);
}

int main(int argc, char *argv[]) {
        static const struct {
                const char *path;
                Test test;
        } tests[] = {
                { "values-go-on", test_values_go_on },
                { "start-stop-and-reset-hold", test_start_stop_and_reset_hold },
                { "groups-go-on", test_groups_go_on },
                { "target-that-ended-meanwhile", test_target_that_ended_meanwhile },
                { "processes-are-attached-and-detached", test_processes_are_attached_and_detached },
                { "client-that-left-meanwhile-is-noticed",
                  test_client_that_left_meanwhile_is_noticed },
                { "readers-stay-readers", test_readers_stay_readers },
                { "descriptors-of-clients-stay-good", test_descriptors_of_clients_stay_good },
                { "raw-leaders-are-remembered", test_raw_leaders_are_remembered },
                { "limits-count-what-was-there", test_limits_count_what_was_there },
                { "monitors-stay-yielded-and-resume", test_monitors_stay_yielded_and_resume },
                { "hold-that-ended-meanwhile-has-them-resume",
                  test_hold_that_ended_meanwhile_has_them_resume },
                { "restored-monitors-yield", test_restored_monitors_yield },
                { "cpu-that-was-away-meanwhile", test_cpu_that_was_away_meanwhile },
                { "nothing-piles-up", test_nothing_piles_up },
        };

        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/restart-counters/", tests[i].path, NULL);

                g_test_add_data_func(path, &tests[i].test, test_run);
        }
        return g_test_run();
}
