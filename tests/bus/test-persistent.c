/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters that outlive their connection, and their reading users. */

#include "event-util.h"
#include "writer.h"

#include <sys/syscall.h>

#define STOPPED "a{sv}", 2, "attach", "b", false, "start", "b", false

/* A counter of this process, which counts. */
static char *counter_of(Client *c, pid_t pid) {
        g_autofree char *event = watched_event(0);

        return counter_open(c, event, "a{sv}", 1, "pid", "u", (uint32_t) pid);
}

static char *persist(Client *c, const char *counter) {
        g_autoptr(sd_bus_message) reply = client_call(c, counter, COUNTER, "Persist", NULL);
        const char *id;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 's', &id), >, 0);
        return g_strdup(id);
}

static char *open_persistent(Client *c, const char *id) {
        g_autoptr(sd_bus_message) reply = client_call(c, MANAGER, "OpenPersistent", "s", id);
        const char *path;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        return g_strdup(path);
}

static bool is_persistent(Client *c, const char *counter) {
        return client_get_number(c, counter, COUNTER, "Persistent", 'b');
}

/* The event of a persistent counter as ListPersistent shows it; NULL: it shows none of that id. */
static char *listed_event(Client *c, const char *id, const char *path) {
        g_autoptr(sd_bus_message) reply = client_call(c, MANAGER, "ListPersistent", NULL);
        const char *listed_id, *counter, *event;
        char *found = NULL;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(sos)"), >, 0);
        while (sd_bus_message_read(reply, "(sos)", &listed_id, &counter, &event) > 0) {
                if (strcmp(listed_id, id) != 0)
                        continue;
                g_assert_null(found);
                g_assert_cmpstr(counter, ==, path);
                found = g_strdup(event);
        }
        return found;
}

static void gone(const char *counter) {
        g_autoptr(Client) root = client_new("root");

        await(!client_finds(root, counter, COUNTER));
}

/* ---- outliving ---- */

static void test_outlives_its_connection(void) {
        g_autoptr(Client) alice = client_new("alice"), again = NULL;
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = counter_of(alice, writer->pid), *other = NULL, *id = NULL,
                        *found = NULL;
        Client *first = alice;

        other = counter_of(alice, writer->pid);
        g_assert_false(is_persistent(alice, counter));
        g_assert_true(client_reads(alice, counter, COUNTER, "Id", ""));
        id = persist(alice, counter);
        g_assert_true(is_persistent(alice, counter));
        g_assert_true(client_reads(alice, counter, COUNTER, "Id", id));
        writer_write(writer);
        alice = NULL;
        client_free(first);
        gone(other);

        again = client_new("alice");
        found = open_persistent(again, id);
        g_assert_cmpstr(found, ==, counter);
        writer_write(writer);
        g_assert_cmpuint(counter_value(again, found), ==, hits(200));
        counter_do(again, found, "Close");
        gone(counter);
}

static void test_may_be_opened_persistent(void) {
        g_autoptr(Client) alice = client_new("alice"), again = NULL;
        g_autofree char *counter =
                counter_open(alice, "page-faults:u", "a{sv}", 3, "persistent", "b", true, "name",
                             "s", "mine", "attach", "b", false);
        g_autofree char *id = client_get(alice, counter, COUNTER, "Id"), *found = NULL;
        Client *first = alice;

        g_assert_true(is_persistent(alice, counter));
        alice = NULL;
        client_free(first);
        again = client_new("alice");
        found = open_persistent(again, id);
        g_assert_true(client_reads(again, found, COUNTER, "Name", "mine"));
        counter_do(again, found, "Close");
}

static void test_needs_persist(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autofree char *counter = counter_open(bob, "page-faults:u", STOPPED);

        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, counter, COUNTER,
                       "Persist", NULL);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.persist"));
        g_assert_false(is_persistent(bob, counter));
        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenCounters", "asa{sv}", 1, "page-faults:u", 1, "persistent", "b", true);
}

static void test_a_group_persists_as_one(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) reply =
                client_call(alice, MANAGER, "OpenCounters", "asa{sv}", 2, "page-faults:u",
                            "context-switches:u", 2, "group", "b", true, "attach", "b", false);
        g_autofree char *one = NULL, *two = NULL, *id = NULL;
        const char *a, *b;

        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &a, &b), >, 0);
        id = persist(alice, a);
        one = client_get(alice, a, COUNTER, "Id");
        two = client_get(alice, b, COUNTER, "Id");
        g_assert_cmpstr(one, ==, id);
        g_assert_cmpstr(two, !=, "");
        g_assert_cmpstr(one, !=, two);
        counter_do(alice, b, "Adopt");
        g_assert_false(is_persistent(alice, a));
}

static void test_tells_of_the_change(void) {
        g_autoptr(Client) alice = client_new("alice"), watcher = client_new("bob");
        g_autofree char *counter = counter_open(alice, "page-faults:u", STOPPED), *id = NULL;

        await(client_finds(watcher, counter, COUNTER));
        client_watch(watcher);
        for (int persistent = 1; persistent >= 0; persistent--) {
                bool told = false;

                if (persistent)
                        id = persist(alice, counter);
                else
                        counter_do(alice, counter, "Adopt");
                while (!told) {
                        g_autoptr(sd_bus_message) m =
                                client_next(watcher, AWAIT_SEC * G_USEC_PER_SEC);
                        const char *name;
                        int value;

                        g_assert_nonnull(m);
                        if (g_strcmp0(sd_bus_message_get_path(m), counter) != 0 ||
                            !sd_bus_message_is_signal(m, "org.freedesktop.DBus.Properties",
                                                      "PropertiesChanged"))
                                continue;
                        g_assert_cmpint(sd_bus_message_skip(m, "s"), >, 0);
                        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "{sv}"), >, 0);
                        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                                g_assert_cmpint(sd_bus_message_read_basic(m, 's', &name), >, 0);
                                if (strcmp(name, "Persistent") == 0) {
                                        g_assert_cmpint(sd_bus_message_read(m, "v", "b", &value), >,
                                                        0);
                                        g_assert_cmpint(value, ==, persistent);
                                        told = true;
                                } else
                                        g_assert_cmpint(sd_bus_message_skip(m, "v"), >, 0);
                                g_assert_cmpint(sd_bus_message_exit_container(m), >, 0);
                        }
                }
        }
}

/* ---- adopting ---- */

static void test_adopted_goes_with_its_last_user(void) {
        g_autoptr(Client) alice = client_new("alice"), adopter = client_new("alice"),
                          reader G_GNUC_UNUSED = client_new("root");
        g_autofree char *counter = counter_open(alice, "page-faults:u", STOPPED);
        g_autofree char *id = persist(alice, counter), *found G_GNUC_UNUSED = NULL,
                        *read G_GNUC_UNUSED = NULL;
        Client *first = alice, *second = adopter;

        alice = NULL;
        client_free(first);
        counter_do(adopter, counter, "Adopt");
        g_assert_false(is_persistent(adopter, counter));
        g_assert_true(client_reads(adopter, counter, COUNTER, "Id", ""));
        client_refused(adopter, SD_BUS_ERROR_UNKNOWN_OBJECT, MANAGER, "OpenPersistent", "s", id);
        adopter = NULL;
        client_free(second);
        gone(counter);
}

static void test_a_reader_keeps_what_was_adopted(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *counter = counter_open(alice, "page-faults:u", STOPPED);
        g_autofree char *id = persist(alice, counter),
                        *found G_GNUC_UNUSED = open_persistent(root, id);
        Client *first = alice, *last = root;

        counter_do(alice, counter, "Adopt");
        alice = NULL;
        client_free(first);
        await(client_count(root, "counter") == 1);
        (void) counter_value(root, counter);
        root = NULL;
        client_free(last);
        gone(counter);
}

/* ---- reading users ---- */

static void test_others_are_authorized_as_if_they_opened(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob"),
                          carol = client_new("carol");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = counter_of(alice, writer->pid), *id = persist(alice, counter),
                        *found = NULL;

        /* bob may not trace alice's process */
        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenPersistent", "s", id);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.count-other"));
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, counter, COUNTER, "Read", NULL);
        /* carol has count-other */
        found = open_persistent(carol, id);
        writer_write(writer);
        g_assert_cmpuint(counter_value(carol, found), ==, hits(100));
        counter_do(alice, counter, "Close");
}

static void assert_needs_count_other(const char *id) {
        g_autoptr(Client) bob = client_new("bob");

        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenPersistent", "s", id);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.count-other"));
}

/* bob may count bob's process, but a reading user cannot prove which process was counted. */
static void test_readers_of_processes_need_count_other(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("bob");
        g_autofree char *living = counter_of(alice, writer->pid), *id = persist(alice, living),
                        *none = counter_open(alice, "page-faults:u", STOPPED),
                        *none_id = persist(alice, none);

        assert_needs_count_other(id);
        assert_needs_count_other(none_id);
        (void) actor_join(writer);
        assert_needs_count_other(id);
        counter_do(alice, living, "Close");
        counter_do(alice, none, "Close");
}

/* Only reading is allowed, and only on this connection. */
static void test_readers_only_read(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = counter_of(alice, writer->pid), *id = persist(alice, counter),
                        *found = open_persistent(carol, id);
        g_autoptr(sd_bus_message) readings = NULL;

        writer_write(writer);
        g_assert_cmpuint(counter_value(carol, found), ==, hits(100));
        sd_bus_message_unref(client_call(carol, found, COUNTER, "ReadEach", NULL));
        readings = client_call(carol, MANAGER, "ReadCounters", "ao", 1, found);
        for (const char *const *method = (const char *const[]){ "Start", "Stop", "Reset", "Persist",
                                                                "Adopt", "GetFds", "Close", NULL };
             *method; method++)
                client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, found, COUNTER, *method, NULL);
        client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, found, COUNTER, "DetachProcess", "u",
                       (uint32_t) writer->pid);
        counter_do(alice, counter, "Close");
}

static void test_readers_of_cpus_need_count_system(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob"),
                          carol = client_new("carol");
        g_autofree char *counter =
                counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        g_autofree char *id = persist(alice, counter), *found = NULL;

        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenPersistent", "s", id);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.count-system"));
        found = open_persistent(carol, id);
        await(counter_value(carol, found) > 0);
        counter_do(alice, counter, "Close");
}

/* The number of a tracepoint that this kernel has; 0: it has none. */
static unsigned tracepoint_find(void) {
        for (unsigned i = 1; i < 1000; i++) {
                PerfAttr attr = software_attr(i);
                _cleanup_close_ int fd = -1;

                attr.type = PERF_TYPE_TRACEPOINT;
                fd = (int) syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
                if (fd >= 0)
                        return i;
        }
        return 0;
}

/* One member's readers may read all members. */
static void test_readers_need_what_all_members_need(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(sd_bus_message) reply = NULL;
        g_autofree char *tracepoint = g_strdup_printf("tracepoint/config=%u/", tracepoint_find()),
                        *id = NULL;
        const char *plain, *raw;

        if (tracepoint_find() == 0) {
                g_test_skip("no tracepoint");
                return;
        }
        reply = client_call(alice, MANAGER, "OpenCounters", "asa{sv}", 2, "cpu-clock", tracepoint,
                            2, "group", "b", true, "scope", "s", "cpu");
        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &plain, &raw), >, 0);
        id = persist(alice, plain);
        rig("rules 05-bob.rules",
            "polkit.addRule(function(action, subject) {"
            "  if (subject.user == 'bob' && action.id == 'org.perfalloc1.count-system')"
            "    return polkit.Result.YES; });");
        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenPersistent", "s", id);
        rig("rules --remove 05-bob.rules", NULL);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.count-raw"));
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, raw, COUNTER, "Read", NULL);
        counter_do(alice, plain, "Close");
        counter_do(alice, raw, "Close");
}

static void test_readers_leave(void) {
        g_autoptr(Client) alice = client_new("alice"), root G_GNUC_UNUSED = client_new("root");
        g_autofree char *counter = counter_open(alice, "page-faults:u", STOPPED);
        g_autofree char *id = persist(alice, counter);

        for (int i = 0; i < 50; i++) {
                g_autoptr(Client) carol = client_new("carol");
                g_autofree char *found = open_persistent(carol, id),
                                *again G_GNUC_UNUSED = open_persistent(carol, id);

                (void) counter_value(carol, found);
        }
        counter_do(alice, counter, "Adopt");
        (void) counter_value(alice, counter);
        counter_do(alice, counter, "Close");
}

/* ---- listing and bad ids ---- */

static void test_all_are_listed(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob"),
                          root = client_new("root");
        g_autofree char *counter = counter_open(alice, "page-faults:u", STOPPED),
                        *other G_GNUC_UNUSED = counter_open(alice, "page-faults:u", STOPPED);
        g_autofree char *id = persist(alice, counter), *again = persist(alice, counter);
        g_autofree char *mine = NULL, *bobs = NULL, *all = NULL;

        g_assert_cmpstr(again, ==, id);
        mine = listed_event(alice, id, counter);
        g_assert_cmpstr(mine, ==, "page-faults:u");
        bobs = listed_event(bob, id, counter);
        g_assert_cmpstr(bobs, ==, ""); /* the event tells about alice's program */
        all = listed_event(root, id, counter);
        g_assert_cmpstr(all, ==, "page-faults:u");
        counter_do(alice, counter, "Close");
        g_assert_null(listed_event(root, id, counter));
}

static void test_bad_ids(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *counter = counter_open(alice, "page-faults:u", STOPPED);
        g_autofree char *id = persist(alice, counter), *padded = g_strdup_printf("0%s", id),
                        *spaced = g_strdup_printf(" %s", id), *longer = g_strnfill(100000, '1'),
                        *other = counter_open(alice, "page-faults:u", STOPPED);
        const char *const bad[] = { "",
                                    "0",
                                    "-1",
                                    "x",
                                    padded,
                                    spaced,
                                    longer,
                                    counter,
                                    "18446744073709551616",
                                    strrchr(other, '/') + 1 };

        for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
                client_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, MANAGER, "OpenPersistent", "s",
                               bad[i]);
        counter_do(alice, counter, "Close");
}

/* A thousand clients leave while they are being authorized. */
static void test_a_reader_that_leaves_in_the_middle(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = counter_of(alice, writer->pid), *id = persist(alice, counter);
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 100; i++) {
                g_autoptr(Client) carol = client_new("carol");

                (void) client_send(carol, MANAGER, "OpenPersistent", "s", id);
                g_usleep((gulong) i * 20);
        }
        await(service_descriptors() <= descriptors);
        counter_do(alice, counter, "Close");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/persistent/outlives-its-connection", test_outlives_its_connection);
        g_test_add_func("/persistent/may-be-opened-so", test_may_be_opened_persistent);
        g_test_add_func("/persistent/needs-persist", test_needs_persist);
        g_test_add_func("/persistent/a-group-persists-as-one", test_a_group_persists_as_one);
        g_test_add_func("/persistent/tells-of-the-change", test_tells_of_the_change);
        g_test_add_func("/persistent/adopted-goes-with-its-last-user",
                        test_adopted_goes_with_its_last_user);
        g_test_add_func("/persistent/a-reader-keeps-what-was-adopted",
                        test_a_reader_keeps_what_was_adopted);
        g_test_add_func("/persistent/readers/authorized-as-if-they-opened",
                        test_others_are_authorized_as_if_they_opened);
        g_test_add_func("/persistent/readers/of-processes-need-count-other",
                        test_readers_of_processes_need_count_other);
        g_test_add_func("/persistent/readers/only-read", test_readers_only_read);
        g_test_add_func("/persistent/readers/of-cpus-need-count-system",
                        test_readers_of_cpus_need_count_system);
        g_test_add_func("/persistent/readers/need-what-all-members-need",
                        test_readers_need_what_all_members_need);
        g_test_add_func("/persistent/readers/leave", test_readers_leave);
        g_test_add_func("/persistent/readers/leave-in-the-middle",
                        test_a_reader_that_leaves_in_the_middle);
        g_test_add_func("/persistent/all-are-listed", test_all_are_listed);
        g_test_add_func("/persistent/bad-ids", test_bad_ids);
        return g_test_run();
}
