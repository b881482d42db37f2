/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters over a restart of the service: after SIGTERM, as by systemctl restart, and after a
 * kill. */

#include "event-util.h"
#include "restart-util.h"
#include "writer.h"

#include <sys/mman.h>

#define BOTH "pmus", "as", 2, "breakpoint", "software"

static char *counter_of(Client *c, pid_t pid) {
        g_autofree char *event = watched_event(0);

        return counter_open(c, event, "a{sv}", 1, "pid", "u", (uint32_t) pid);
}

/* The service does not see what happens from here on, before it is killed. To end by SIGTERM it has
 * to run. */
static void stop_seeing(const void *restart) {
        if (strcmp(restart, RESTARTED) != 0)
                rig("service-signal STOP", NULL);
}

static void exact(Client *c, const char *counter, uint64_t n_writes) {
        g_auto(Measured) m = counter_read(c, counter);

        g_assert_cmpuint(m.value, ==, hits(n_writes));
        g_assert_cmpstr(m.quality, ==, "exact");
}

static unsigned stored(void) {
        g_autofree char *out = NULL;

        g_assert_true(g_spawn_command_line_sync("service-stored", &out, NULL, NULL, NULL));
        return (unsigned) g_ascii_strtoull(out, NULL, 10);
}

/* ---- values ---- */

static void test_values_go_on(const void *restart) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(Actor) writer = writer_new("alice");
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

static void test_start_stop_and_reset_hold(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
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

static void test_the_end_of_idleness_is_told(const void *restart) {
        g_autoptr(Client) alice = client_new("alice"), watcher = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = NULL;

        await(process_is_asleep(writer->pid));
        counter = counter_of(alice, writer->pid);
        g_assert_true(counter_is(alice, counter, "idle"));
        rig(restart, NULL);
        client_watch(watcher);
        writer_write(writer);
        g_assert_true(counter_is(alice, counter, "counting"));
        counter_told(watcher, counter, "counting");
        counter_do(alice, counter, "Close");
}

static void test_groups_go_on(const void *restart) {
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

#define TOGETHER 150u /* more than go into one message of the store */

/* Each is stopped after one more page was touched: no two have counted the same. */
static void open_together(Client *c, char *paths[static TOGETHER],
                          uint64_t values[static TOGETHER]) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters"), reply = NULL;
        const size_t page = (size_t) sysconf(_SC_PAGESIZE);
        volatile char *memory = mmap(NULL, TOGETHER * page, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const char *path;

        g_assert_true(memory != MAP_FAILED);
        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (size_t i = 0; i < TOGETHER; i++)
                g_assert_cmpint(sd_bus_message_append(m, "s", "page-faults:u"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 0), >=, 0);
        reply = client_call_message(c, m);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        for (size_t i = 0; i < TOGETHER; i++) {
                g_assert_cmpint(sd_bus_message_read(reply, "o", &path), >, 0);
                memory[i * page] = 1;
                counter_do(c, path, "Stop");
                paths[i] = g_strdup(path);
                values[i] = counter_value(c, path);
                g_assert_true(i == 0 || values[i] > values[i - 1]);
        }
        g_assert_cmpint(munmap((void *) (uintptr_t) memory, TOGETHER * page), ==, 0);
}

/* What shares a message of the store can be closed one by one, and each keeps what is its own. */
static void test_those_opened_together_go_on(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        uint64_t values[TOGETHER];
        char *paths[TOGETHER];

        open_together(alice, paths, values);
        for (size_t step = 0; step < 4; step++) {
                rig(restart, NULL);
                for (size_t i = 0; i < TOGETHER; i++)
                        if (i % 3 < step)
                                g_assert_false(client_finds(alice, paths[i], COUNTER));
                        else
                                g_assert_cmpuint(counter_value(alice, paths[i]), ==, values[i]);
                for (size_t i = step; i < TOGETHER && step < 3; i += 3)
                        counter_do(alice, paths[i], "Close");
        }
        for (size_t i = 0; i < TOGETHER; i++)
                g_free(paths[i]);
}

static void test_target_that_ended_meanwhile(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = counter_of(alice, writer->pid);

        writer_write(writer);
        stop_seeing(restart);
        g_assert_cmpint(actor_join(writer), ==, 0);
        rig(restart, NULL);
        exact(alice, counter, 100);
        counter_do(alice, counter, "Close");
}

static void test_processes_are_attached_and_detached(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
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

/* ---- processes that are attached one after the other ---- */

enum { CROWD = 70 };

static void crowd_new(Actor *crowd[static CROWD]) {
        for (unsigned i = 0; i < CROWD; i++)
                crowd[i] = writer_new("alice");
}

static void crowd_free(Actor *crowd[static CROWD]) {
        for (unsigned i = 0; i < CROWD; i++)
                actor_free(crowd[i]);
}

static void crowd_write(Actor *crowd[static CROWD]) {
        for (unsigned i = 0; i < CROWD; i++)
                writer_write(crowd[i]);
}

static char *empty_open(Client *c) {
        g_autofree char *event = watched_event(0);

        return counter_open(c, event, "a{sv}", 2, "attach", "b", false, "start", "b", false);
}

static uint64_t attach_send(Client *c, const char *counter, const Actor *a) {
        return client_send(c, counter, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) a->pid, 0);
}

static unsigned n_targets(Client *c, const char *counter) {
        g_autoptr(sd_bus_message) reply = client_get_variant(c, counter, COUNTER, "Targets", "au");
        const void *pids;
        size_t size;

        g_assert_cmpint(sd_bus_message_read_array(reply, 'u', &pids, &size), >=, 0);
        return (unsigned) (size / sizeof(uint32_t));
}

/* Each is stored beside those before it. */
static void test_a_crowd_is_attached(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *counter = empty_open(alice);
        Actor *crowd[CROWD];

        crowd_new(crowd);
        for (unsigned i = 0; i < CROWD; i++)
                sd_bus_message_unref(client_receive(alice, attach_send(alice, counter, crowd[i])));
        sd_bus_message_unref(client_call(alice, counter, COUNTER, "DetachProcess", "u",
                                         (uint32_t) crowd[CROWD - 2]->pid));
        rig(restart, NULL);
        g_assert_cmpuint(n_targets(alice, counter), ==, CROWD - 1);
        sd_bus_message_unref(client_receive(alice, attach_send(alice, counter, crowd[CROWD - 2])));
        counter_do(alice, counter, "Start");
        crowd_write(crowd);
        rig(restart, NULL);
        crowd_write(crowd);
        exact(alice, counter, 2 * 100 * CROWD);
        counter_do(alice, counter, "Close");
        crowd_free(crowd);
}

/* What was answered is attached, and nobody is by half. */
static void test_killed_while_a_crowd_is_attached(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *counter = empty_open(alice);
        uint64_t cookies[CROWD];
        Actor *crowd[CROWD];
        unsigned n = 0;

        crowd_new(crowd);
        for (unsigned i = 0; i < CROWD; i++)
                cookies[i] = attach_send(alice, counter, crowd[i]);
        sd_bus_message_unref(client_receive(alice, cookies[CROWD / 2]));
        rig(restart, NULL);
        for (unsigned i = 0; i < CROWD; i++) {
                g_autoptr(sd_bus_message) reply = NULL;

                if (i == CROWD / 2)
                        n++;
                else {
                        reply = client_receive(alice, cookies[i]);
                        n += !sd_bus_message_is_method_error(reply, NULL);
                }
        }
        g_test_message("%u of %u attached and answered", n, CROWD);
        g_assert_cmpuint(n_targets(alice, counter), >=, n);
        counter_do(alice, counter, "Start");
        crowd_write(crowd);
        exact(alice, counter, 100ull * n_targets(alice, counter));
        counter_do(alice, counter, "Close");
        crowd_free(crowd);
}

/* ---- ownership ---- */

static void test_client_that_left_meanwhile_is_noticed(const void *restart) {
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

static int play_restarter(int fd, const void *restart) {
        while (act_hear(fd)) {
                rig(restart, NULL);
                act_say(fd, 'r');
        }
        return 0;
}

/* A daemon of root's that acts for a user at that moment is root when it calls again. */
static void test_root_stays_root(const void *restart) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autoptr(Actor) restarter = actor_new("root", play_restarter, restart);
        g_autofree char *counter = monitor_open(root, 0, 0), *other = NULL;

        g_assert_no_errno(seteuid(user_id("alice")));
        actor_tell(restarter, 'r');
        g_assert_cmpint(actor_hear(restarter), ==, 'r');
        client_greet(alice);
        g_assert_no_errno(seteuid(0));
        other = monitor_open(root, 1, 0);
        counter_do(root, counter, "Close");
        counter_do(root, other, "Close");
}

static void test_readers_stay_readers(const void *restart) {
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

static void test_descriptors_of_clients_stay_good(const void *restart) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0),
                        *counter = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(sd_bus_message) reply = client_call(alice, counter, COUNTER, "GetFds", NULL);
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "ah", 1, &fd), >, 0);
        /* only the client can stop it now */
        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), ==, 0);
        rig(restart, NULL);
        watched_write(0, 10);
        g_assert_cmpuint(descriptor_value(fd), ==, 0);
        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        watched_write(0, 10);
        g_assert_cmpuint(descriptor_value(fd), ==, hits(10));
        exact(alice, counter, 10);
        counter_do(alice, counter, "Stop");
        client_refused(alice, PERFALLOC_ERROR_NOT_PERMITTED, counter, COUNTER, "AttachProcess",
                       "ua{sv}", 1, 0);
        counter_do(alice, counter, "Close");
}

/* Events may still join a leader that was opened before the restart. */
static void test_raw_leaders_are_remembered(const void *restart) {
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

static void test_limits_count_what_was_there(const void *restart) {
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
        g_assert_cmpuint(counter_value(c, m->closing), ==, hits(closing));
        g_assert_cmpuint(counter_value(c, m->disabled), ==, disabled);
}

static void test_monitors_stay_yielded_and_resume(const void *restart) {
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

static void test_hold_that_ended_meanwhile_has_them_resume(const void *restart) {
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

static void test_restored_monitors_yield(const void *restart) {
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

static void test_nothing_piles_up(const void *restart) {
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
        g_assert_cmpuint(stored(), <=, kept + 1); /* a queue that is being filled */
        for (size_t i = 0; i < G_N_ELEMENTS(counters); i++) {
                counter_do(alice, counters[i], "Close");
                g_free(counters[i]);
        }
        monitors_close(&m, root);
        g_assert_cmpuint(breakpoints_free(), ==, 4);
}

int main(int argc, char *argv[]) {
        static const RestartTest tests[] = {
                { "values-go-on", test_values_go_on },
                { "start-stop-and-reset-hold", test_start_stop_and_reset_hold },
                { "the-end-of-idleness-is-told", test_the_end_of_idleness_is_told },
                { "groups-go-on", test_groups_go_on },
                { "those-opened-together-go-on", test_those_opened_together_go_on },
                { "target-that-ended-meanwhile", test_target_that_ended_meanwhile },
                { "processes-are-attached-and-detached", test_processes_are_attached_and_detached },
                { "a-crowd-is-attached", test_a_crowd_is_attached },
                { "killed-while-a-crowd-is-attached", test_killed_while_a_crowd_is_attached },
                { "client-that-left-meanwhile-is-noticed",
                  test_client_that_left_meanwhile_is_noticed },
                { "root-stays-root", test_root_stays_root },
                { "readers-stay-readers", test_readers_stay_readers },
                { "descriptors-of-clients-stay-good", test_descriptors_of_clients_stay_good },
                { "raw-leaders-are-remembered", test_raw_leaders_are_remembered },
                { "limits-count-what-was-there", test_limits_count_what_was_there },
                { "monitors-stay-yielded-and-resume", test_monitors_stay_yielded_and_resume },
                { "hold-that-ended-meanwhile-has-them-resume",
                  test_hold_that_ended_meanwhile_has_them_resume },
                { "restored-monitors-yield", test_restored_monitors_yield },
                { "nothing-piles-up", test_nothing_piles_up },
        };

        g_test_init(&argc, &argv, NULL);
        restart_tests_add(tests, G_N_ELEMENTS(tests));
        return g_test_run();
}
