/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters as objects: start, stop, read, groups, owners, and their end. */

#include "bus-util.h"

#include <signal.h>

static void assert_reads(Client *c, const char *path, uint64_t value, const char *quality) {
        g_auto(Measured) m = counter_read(c, path);

        g_assert_cmpuint(m.value, ==, value);
        g_assert_cmpstr(m.quality, ==, quality);
}

static char *open_watched(Client *c, size_t i, int start) {
        g_autofree char *event = watched_event(i);

        return counter_open(c, event, "a{sv}", 2, "scope", "s", "cpu", "start", "b", start);
}

static void test_starts(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = open_watched(root, 0, true);

        g_assert_true(counter_is(root, path, "counting"));
        watched_write(0, 10);
        assert_reads(root, path, hits(10), "exact");
}

static void test_start_false(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = open_watched(root, 0, false);

        g_assert_true(counter_is(root, path, "stopped"));
        watched_write(0, 10);
        assert_reads(root, path, 0, "not-counted");
        counter_do(root, path, "Start");
        g_assert_true(counter_is(root, path, "counting"));
        watched_write(0, 3);
        assert_reads(root, path, hits(3), "exact");
}

static void test_stop(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = open_watched(root, 0, true);
        g_auto(Measured) stopped = {}, later = {};

        watched_write(0, 10);
        counter_do(root, path, "Stop");
        g_assert_true(counter_is(root, path, "stopped"));
        stopped = counter_read(root, path);
        watched_write(0, 10);
        later = counter_read(root, path);
        g_assert_cmpuint(later.value, ==, hits(10));
        g_assert_cmpuint(later.enabled, ==, stopped.enabled);
        counter_do(root, path, "Start");
        watched_write(0, 3);
        assert_reads(root, path, hits(13), "exact");
}

static void test_reset(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = open_watched(root, 0, true);
        g_auto(Measured) m = {};

        watched_write(0, 10);
        counter_do(root, path, "Stop");
        counter_do(root, path, "Reset");
        m = counter_read(root, path);
        g_assert_cmpuint(m.value, ==, 0);
        g_assert_cmpuint(m.enabled, ==, 0);
        g_assert_cmpuint(m.running, ==, 0);
        counter_do(root, path, "Start");
        watched_write(0, 3);
        assert_reads(root, path, hits(3), "exact");
}

/* Repeating "stopped" or "counting" is no error. */
static void test_twice(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = open_watched(root, 0, true);

        counter_do(root, path, "Start");
        watched_write(0, 3);
        counter_do(root, path, "Stop");
        counter_do(root, path, "Stop");
        assert_reads(root, path, hits(3), "exact");
}

static void test_close(void) {
        g_autoptr(Client) root = client_new("root");
        char *paths[4];
        unsigned before = service_descriptors();

        for (size_t i = 0; i < 4; i++)
                paths[i] = open_watched(root, i, true);
        client_refused(root, PERFALLOC_ERROR_NO_COUNTER_LEFT, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "mem:0x1000/8:w", 1, "scope", "s", "cpu");
        for (size_t i = 0; i < 4; i++) {
                counter_do(root, paths[i], "Close");
                g_assert_false(client_finds(root, paths[i], COUNTER));
                g_free(paths[i]);
        }
        g_assert_cmpuint(service_descriptors(), ==, before);
        g_assert_cmpint(close(breakpoint_open(-1, 0)), ==, 0);
}

static void test_all_or_none(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *good = watched_event(0);
        unsigned before = service_descriptors();

        client_refused(root, PERFALLOC_ERROR_NO_COUNTER_LEFT, MANAGER, "OpenCounters", "asa{sv}", 5,
                       good, good, good, good, good, 1, "scope", "s", "cpu");
        client_refused(root, PERFALLOC_ERROR_NO_SUCH_EVENT, MANAGER, "OpenCounters", "asa{sv}", 2,
                       good, "no-such-event", 1, "scope", "s", "cpu");
        g_assert_nonnull(strstr(root->refusal, "no-such-event"));
        g_assert_cmpuint(client_count(root, "counter"), ==, 0);
        g_assert_cmpuint(service_descriptors(), ==, before);
}

static void test_properties(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;

        path = counter_open(alice, "cpu-clock", "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0",
                            "name", "s", "my name");
        g_assert_true(client_reads(alice, path, COUNTER, "Event", "cpu-clock"));
        g_assert_true(client_reads(alice, path, COUNTER, "Name", "my name"));
        g_assert_true(client_reads(alice, path, COUNTER, "Scope", "cpu"));
        g_assert_true(client_reads(alice, path, COUNTER, "Cpus", "0"));
        g_assert_true(client_reads(alice, path, COUNTER, "Role", "foreground"));
        g_assert_true(client_reads(alice, path, COUNTER, "Id", ""));
        g_assert_cmpuint(client_get_number(alice, path, COUNTER, "Uid", 'u'), ==, user_id("alice"));
        g_assert_cmpuint(client_get_number(alice, path, COUNTER, "Type", 'u'), ==, 1);
        g_assert_cmpuint(client_get_number(alice, path, COUNTER, "Config", 't'), ==, 0);
        g_assert_cmpuint(client_get_number(alice, path, COUNTER, "Persistent", 'b'), ==, 0);
}

static void test_secrecy(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *path = NULL;

        path = counter_open(alice, "context-switches", "a{sv}", 2, "scope", "s", "cpu", "name", "s",
                            "my name");
        g_assert_true(client_reads(bob, path, COUNTER, "Event", ""));
        g_assert_true(client_reads(bob, path, COUNTER, "Name", ""));
        g_assert_cmpuint(client_get_number(bob, path, COUNTER, "Config", 't'), ==, 0);
        g_assert_cmpuint(client_get_number(alice, path, COUNTER, "Config", 't'), >, 0);
        g_assert_true(client_reads(bob, path, COUNTER, "State", "counting"));
}

static void test_not_owner(void) {
        static const char *const methods[] = { "Start",    "Stop",      "Reset", "Read",
                                               "ReadEach", "ReadParts", "Close" };
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autofree char *path = NULL, *own = NULL;

        path = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
                client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, path, COUNTER, methods[i], NULL);
        own = counter_open(carol, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, MANAGER, "ReadCounters", "ao", 2, own,
                       path);
        g_assert_true(counter_is(alice, path, "counting"));
}

static void test_read_many(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = open_watched(root, 0, true), *second = open_watched(root, 1, true);
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t a, b;

        watched_write(0, 10);
        watched_write(1, 20);
        reply = client_call(root, MANAGER, "ReadCounters", "ao", 3, second, first, second);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(tttts)"), >, 0);
        g_assert_cmpint(sd_bus_message_read(reply, "(tttts)", &b, NULL, NULL, NULL, NULL), >, 0);
        g_assert_cmpint(sd_bus_message_read(reply, "(tttts)", &a, NULL, NULL, NULL, NULL), >, 0);
        g_assert_cmpuint(a, ==, hits(10));
        g_assert_cmpuint(b, ==, hits(20));
        client_refused(root, SD_BUS_ERROR_UNKNOWN_OBJECT, MANAGER, "ReadCounters", "ao", 2, first,
                       PERFALLOC_OBJECT_PATH "/counter/18446744073709551615");
}

/* A list in one string, and a name of an event's own. */
static void test_lists(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = watched_event(0), *second = watched_event(1);
        g_autofree char *list = g_strdup_printf("%s,%s", first, second);
        g_autoptr(sd_bus_message) reply = NULL, other = NULL;
        const char *a, *b, *c;

        reply = client_call(root, MANAGER, "OpenCounters", "asa{sv}", 1, list, 1, "scope", "s",
                            "cpu");
        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &a, &b), >, 0);
        g_assert_true(client_reads(root, a, COUNTER, "Event", first));
        g_assert_true(client_reads(root, b, COUNTER, "Event", second));
        other = client_call(root, MANAGER, "OpenCounters", "asa{sv}", 1,
                            "software/config=2,name=my-faults/", 1, "scope", "s", "cpu");
        g_assert_cmpint(sd_bus_message_read(other, "ao", 1, &c), >, 0);
        g_assert_true(client_reads(root, c, COUNTER, "Name", "my-faults"));
        client_refused(root, PERFALLOC_ERROR_INVALID_EVENT, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults,", 1, "scope", "s", "cpu");
}

static void test_read_each(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = open_watched(root, 0, true);
        g_autoptr(sd_bus_message) reply = NULL;
        const char *quality;
        uint64_t value, sum = 0;
        int32_t cpu;
        uint32_t tid;
        unsigned n = 0;

        watched_write(0, 10);
        reply = client_call(root, path, COUNTER, "ReadEach", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(iuttts)"), >, 0);
        while (sd_bus_message_read(reply, "(iuttts)", &cpu, &tid, &value, NULL, NULL, &quality) >
               0) {
                g_assert_cmpint(cpu, ==, (int) n++);
                g_assert_cmpuint(tid, ==, 0);
                g_assert_cmpstr(quality, ==, "exact");
                sum += value;
        }
        g_assert_cmpuint(n, ==, n_cpus());
        g_assert_cmpuint(sum, ==, hits(10));
}

static void test_group(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = watched_event(0), *second = watched_event(1);
        g_autoptr(sd_bus_message) reply = NULL;
        const char *a, *b;

        reply = client_call(root, MANAGER, "OpenCounters", "asa{sv}", 2, first, second, 2, "scope",
                            "s", "cpu", "group", "b", 1);
        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &a, &b), >, 0);
        counter_do(root, b, "Stop");
        g_assert_true(counter_is(root, a, "stopped"));
        counter_do(root, a, "Start");
        g_assert_true(counter_is(root, b, "counting"));
        watched_write(0, 10);
        watched_write(1, 20);
        counter_do(root, a, "Close");
        watched_write(1, 2);
        assert_reads(root, b, hits(22), "exact");
}

/* ---- a process that sleeps ---- */

static int play_sleeper(int fd, const void *data) {
        while (act_hear(fd) == 'w') {
                watched_write(0, 10);
                act_say(fd, 'o');
        }
        return 0;
}

/* Awaits the signal of the object manager about the counter. */
static void assert_heard_of(Client *c, const char *path, const char *member) {
        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC);
                const char *which;

                g_assert_nonnull(m);
                if (sd_bus_message_is_signal(m, NULL, member) &&
                    sd_bus_message_read(m, "o", &which) > 0 && strcmp(which, path) == 0)
                        return;
        }
}

/* Started, and its process has not run since. */
static void test_idle(void) {
        g_autoptr(Client) root = client_new("root"), watcher = client_new("root");
        g_autoptr(Actor) sleeper = actor_new("root", play_sleeper, NULL);
        g_autofree char *event = watched_event(0), *path = NULL;

        await(process_is_asleep(sleeper->pid));
        client_watch(watcher);
        path = counter_open(root, event, "a{sv}", 1, "pid", "u", (uint32_t) sleeper->pid);
        g_assert_true(counter_is(root, path, "idle"));
        assert_reads(root, path, 0, "not-counted");
        assert_heard_of(watcher, path, "InterfacesAdded"); /* changes are told from then on */
        actor_tell(sleeper, 'w');
        g_assert_cmpint(actor_hear(sleeper), ==, 'o');
        assert_reads(root, path, hits(10), "exact");
        counter_told(watcher, path, "counting");
        g_assert_true(counter_is(root, path, "counting"));
        await(process_is_asleep(sleeper->pid));
        counter_do(root, path, "Reset");
        counter_told(watcher, path, "idle");
        counter_do(root, path, "Stop");
        g_assert_true(counter_is(root, path, "stopped"));
}

/* By whoever asks for the state, who may be somebody else than was told. */
static void test_the_end_of_idleness_is_told(void) {
        g_autoptr(Client) root = client_new("root"), watcher = client_new("root");
        g_autoptr(Actor) sleeper = actor_new("root", play_sleeper, NULL);
        g_autofree char *event = watched_event(0), *path = NULL;

        await(process_is_asleep(sleeper->pid));
        client_watch(watcher);
        path = counter_open(root, event, "a{sv}", 1, "pid", "u", (uint32_t) sleeper->pid);
        assert_heard_of(watcher, path, "InterfacesAdded");
        g_assert_true(counter_is(root, path, "idle"));
        actor_tell(sleeper, 'w');
        g_assert_cmpint(actor_hear(sleeper), ==, 'o');
        g_assert_true(counter_is(root, path, "counting"));
        counter_told(watcher, path, "counting");
}

static void test_leaving(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL;
        unsigned before = service_descriptors();

        path = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        client_free(TAKE_PTR(alice));
        await(!client_finds(root, path, COUNTER));
        await(service_descriptors() <= before);
}

static int play_client(int fd, const void *data) {
        g_autoptr(Client) me = client_new("alice");
        g_autofree char *event = watched_event(7), *path = NULL;

        for (int i = 0; i < 4; i++) {
                g_clear_pointer(&path, g_free);
                path = counter_open(me, event, "a{sv}", 1, "scope", "s", "cpu");
        }
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

static void test_kill(void) {
        g_autoptr(Client) root = client_new("root");
        unsigned before = service_descriptors();
        g_autoptr(Actor) client = actor_new("alice", play_client, NULL);

        g_assert_cmpint(actor_hear(client), ==, 'o');
        g_assert_cmpuint(client_count(root, "counter"), ==, 4);
        g_assert_cmpint(breakpoint_open(-1, 0), ==, -ENOSPC);
        g_assert_cmpint(kill(client->pid, SIGKILL), ==, 0);
        await(client_count(root, "counter") == 0);
        await(service_descriptors() <= before);
        g_assert_cmpint(close(breakpoint_open(-1, 0)), ==, 0);
}

static void test_added(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL;

        client_watch(root);
        path = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        assert_heard_of(root, path, "InterfacesAdded");
        counter_do(root, path, "Close");
        assert_heard_of(root, path, "InterfacesRemoved");
}

static void test_encode(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autofree char *event = watched_event(2);
        g_autoptr(sd_bus_message) reply = client_call(bob, MANAGER, "EncodeEvent", "s", event);
        uint32_t type;
        uint64_t address, length;

        g_assert_cmpint(sd_bus_message_read(reply, "uttt", &type, NULL, &address, &length), >, 0);
        g_assert_cmpuint(type, ==, 5);
        g_assert_cmpuint(address, ==, (uintptr_t) &watched[2]);
        g_assert_cmpuint(length, ==, 8);
        client_refused(bob, PERFALLOC_ERROR_NO_SUCH_EVENT, MANAGER, "EncodeEvent", "s", "cpu-clok");
        g_assert_nonnull(strstr(bob->refusal, "cpu-clock"));
}

static void test_list_events(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(sd_bus_message) reply =
                client_call(bob, MANAGER, "ListEvents", "s", "PAGE-fault*");
        const char *name, *pmu;
        bool found = false;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(sss)"), >, 0);
        while (sd_bus_message_read(reply, "(sss)", &name, &pmu, NULL) > 0) {
                g_assert_cmpint(g_ascii_strncasecmp(name, "page-fault", 10), ==, 0);
                found |= strcmp(name, "page-faults") == 0 && strcmp(pmu, "software") == 0;
        }
        g_assert_true(found);
}

/* What is pinned to a CPU takes from everybody there: so it needs a hold, as in OpenEvent. */
static void test_pinned_on_cpus(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0), *hold = NULL, *counter = NULL;
        _cleanup_close_ int lease = -1;

        client_refused(alice, PERFALLOC_ERROR_NOT_PERMITTED, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 2, "scope", "s", "cpu", "pinned", "b", true);
        g_assert_nonnull(strstr(alice->refusal, "'pinned'"));
        hold = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "0");
        g_assert_true(hold_wait(alice, hold));
        if (n_cpus() > 1)
                client_refused(alice, PERFALLOC_ERROR_NOT_PERMITTED, MANAGER, "OpenCounters",
                               "asa{sv}", 1, event, 2, "scope", "s", "cpu", "pinned", "b", true);
        counter = counter_open(alice, event, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0",
                               "pinned", "b", true);
        counter_do(alice, counter, "Close");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/counter/counts-when-the-reply-comes", test_starts);
        g_test_add_func("/counter/waits-for-start-when-told-to", test_start_false);
        g_test_add_func("/counter/stop-keeps-value-and-times", test_stop);
        g_test_add_func("/counter/reset-begins-at-nothing", test_reset);
        g_test_add_func("/counter/start-and-stop-may-be-said-twice", test_twice);
        g_test_add_func("/counter/close-gives-back-at-once", test_close);
        g_test_add_func("/counter/one-call-opens-all-or-none", test_all_or_none);
        g_test_add_func("/counter/properties-say-what-it-is", test_properties);
        g_test_add_func("/counter/what-it-counts-is-for-owner-and-root", test_secrecy);
        g_test_add_func("/counter/others-are-not-its-owner", test_not_owner);
        g_test_add_func("/counter/many-are-read-in-one-call", test_read_many);
        g_test_add_func("/counter/a-string-may-be-a-list", test_lists);
        g_test_add_func("/counter/each-cpu-has-a-row", test_read_each);
        g_test_add_func("/counter/a-group-starts-and-stops-as-one", test_group);
        g_test_add_func("/counter/is-idle-until-its-process-runs", test_idle);
        g_test_add_func("/counter/the-end-of-idleness-is-told", test_the_end_of_idleness_is_told);
        g_test_add_func("/counter/ends-with-its-connection", test_leaving);
        g_test_add_func("/counter/ends-with-a-killed-client", test_kill);
        g_test_add_func("/counter/the-object-manager-tells-of-it", test_added);
        g_test_add_func("/counter/encodeevent-says-what-a-string-means", test_encode);
        g_test_add_func("/counter/listevents-takes-a-glob-in-any-case", test_list_events);
        g_test_add_func("/counter/pinned-on-cpus-needs-a-hold", test_pinned_on_cpus);
        return g_test_run();
}
