/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* AttachProcess of a process with its descendants, which are created and end meanwhile. */

#include "attach-util.h"
#include "storm.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

/* ---- descendants ---- */

static void test_living_descendants_count(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *counter = unattached_open(alice);

        attach_tree(alice, counter, parent->pid);
        assert_targets(alice, counter, 1, parent->pid);
        counter_do(alice, counter, "Start");
        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(200));
        detach(alice, counter, parent->pid);
        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(200));
}

static void test_living_descendants_count_at_opening(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 2, "pid", "u",
                                                (uint32_t) parent->pid, "descendants", "b", true);
        g_autofree char *alone =
                counter_open(alice, event, "a{sv}", 1, "pid", "u", (uint32_t) parent->pid);

        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(200));
        g_assert_cmpuint(counter_value(alice, alone), ==, hits(100));
}

/* Each process of a tree has a row of its own, which names it, also after a restart. */
static void test_each_process_has_a_row(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *counter = unattached_open(alice);

        attach_tree(alice, counter, parent->pid);
        counter_do(alice, counter, "Start");
        writer_write(parent);
        for (int run = 0; run < 2; run++) {
                g_autoptr(sd_bus_message) rows =
                        client_call(alice, counter, COUNTER, "ReadParts", NULL);
                unsigned n = 0, n_child = 0;
                const char *pmu, *quality;
                uint64_t value, estimate;
                uint32_t pid, tid;

                g_assert_cmpint(sd_bus_message_enter_container(rows, 'a', "(iuustttts)"), >, 0);
                while (sd_bus_message_read(rows, "(iuustttts)", NULL, &pid, &tid, &pmu, &value,
                                           NULL, NULL, &estimate, &quality) > 0) {
                        g_assert_true((pid_t) pid == parent->pid || (pid_t) pid == child);
                        g_assert_cmpuint(tid, ==, pid);
                        g_assert_cmpstr(pmu, ==, "breakpoint");
                        g_assert_cmpuint(value, ==, hits(100));
                        g_assert_cmpuint(estimate, ==, hits(100));
                        g_assert_cmpstr(quality, ==, "exact");
                        n++;
                        n_child += (pid_t) pid == child;
                }
                g_assert_cmpuint(n, ==, 2);
                g_assert_cmpuint(n_child, ==, 1);
                if (run == 0)
                        rig("service-restart", NULL);
        }
}

static void test_descendants_by_default_as_at_opening(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 3, "attach", "b", false,
                                                "start", "b", false, "descendants", "b", true);

        attach(alice, counter, parent->pid);
        counter_do(alice, counter, "Start");
        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(200));
}

/* On a busy machine a storm may not be stopped in time: then nothing was done. */
static bool attach_in_time(Client *c, const char *counter, pid_t pid, bool descendants) {
        uint64_t cookie =
                client_send(c, counter, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) pid, 2,
                            "procfd", "h", client_proof(c, pid), "descendants", "b", descendants);
        g_autoptr(sd_bus_message) reply = client_receive(c, cookie);

        if (!sd_bus_message_is_method_error(reply, NULL))
                return true;
        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==, PERFALLOC_ERROR_BUSY);
        assert_targets(c, counter, 0);
        return false;
}

/* Each process that existed when it was attached, or was created since, is counted once. By a user
 * who may count own processes only, so that every process in it is checked. */
static void test_a_storm_of_forks_is_counted_once(void) {
        g_autoptr(Client) client = client_new("bob");
        Storm *storm = storm_new();

        for (int round = 0; round < STORM_ROUNDS; round++) {
                g_autofree char *counter = unattached_open(client);
                g_autoptr(Actor) actor = NULL;

                *storm = (Storm){};
                actor = actor_new("bob", play_storm, &storm);
                await(storm->n_born > 5 * STORM_FORKERS * STORM_STAYING);
                await(attach_in_time(client, counter, actor->pid, true));
                counter_do(client, counter, "Start");
                storm->go = true;
                g_assert_cmpint(actor_hear(actor), ==, 'd');
                g_assert_cmpuint(storm->n_written, >=, STORM_FORKERS * 4);
                g_assert_cmpuint(counter_value(client, counter), ==, hits(storm->n_written));
                g_assert_cmpint(actor_join(actor), ==, 0);
                counter_do(client, counter, "Close");
        }
        storm_free(storm);
}

static uint64_t storm_turn(Client *c, const char *counter, Storm *storm) {
        uint64_t written = storm->n_written, value = counter_value(c, counter);

        storm->turn++;
        await(storm->n_written == written + STORM_FORKERS);
        return counter_value(c, counter) - value;
}

/* A thread that is being created while its events are started may be missed, and its parent too,
 * but not for long (perf/group/gate.h). */
static void test_a_storm_of_threads_is_counted_once(void) {
        g_autoptr(Client) alice = client_new("alice");
        Storm *storm = storm_new();

        for (int round = 0; round < STORM_ROUNDS; round++) {
                g_autofree char *counter = unattached_open(alice);
                g_autoptr(Actor) actor = NULL;
                uint64_t n_missed;

                *storm = (Storm){};
                actor = actor_new("alice", play_thread_storm, &storm);
                await(storm->n_born > 100);
                await(attach_in_time(alice, counter, actor->pid, false));
                counter_do(alice, counter, "Start");
                storm->go = true;
                await(storm->n_done == STORM_FORKERS);
                await(storm_turn(alice, counter, storm) == hits(STORM_FORKERS));
                n_missed = hits(storm->n_written) - counter_value(alice, counter);
                g_assert_cmpuint(storm_turn(alice, counter, storm), ==, hits(STORM_FORKERS));
                g_assert_cmpuint(hits(storm->n_written) - counter_value(alice, counter), ==,
                                 n_missed);
                storm->over = true;
                g_assert_cmpint(actor_hear(actor), ==, 'd');
                g_assert_cmpint(actor_join(actor), ==, 0);
                counter_do(alice, counter, "Close");
        }
        storm_free(storm);
}

static void event_disable(int fd, void *userdata) {
        unsigned *n = userdata;

        *n += ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0;
}

/* Disables the events of the service; returns how many it has. */
static unsigned events_disable(void) {
        unsigned n = 0;

        service_events_each(event_disable, &n);
        return n;
}

static bool writer_is_counted(Client *c, const char *counter, Actor *writer) {
        uint64_t value = counter_value(c, counter);

        writer_write(writer);
        return counter_value(c, counter) == value + hits(100);
}

/* What is behind the service's back stands for threads that a start has missed, which nobody can
 * bring about at will. */
static void test_what_a_start_missed_is_reached_soon(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);

        attach(alice, counter, writer->pid);
        counter_do(alice, counter, "Start");
        g_assert_cmpuint(events_disable(), >, 0);
        await(writer_is_counted(alice, counter, writer));
}

/* ---- in the middle ---- */

static void test_a_target_that_dies_in_the_middle(void) {
        g_autoptr(Client) bob = client_new("bob");
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 100; i++) {
                g_autofree char *counter = unattached_open(bob);
                pid_t child;
                g_autoptr(Actor) parent = parent_new("bob", &child);
                uint64_t cookie =
                        client_send(bob, counter, COUNTER, "AttachProcess", "ua{sv}",
                                    (uint32_t) parent->pid, 2, "procfd", "h",
                                    client_proof(bob, parent->pid), "descendants", "b", i % 2 == 0);
                g_autoptr(sd_bus_message) reply = NULL;

                g_usleep((gulong) i * 10);
                kill(i % 3 == 0 ? child : parent->pid, SIGKILL);
                reply = client_receive(bob, cookie);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_test_message("%d: %s", i, sd_bus_message_get_error(reply)->message);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        PERFALLOC_ERROR_NO_SUCH_PROCESS);
                kill(child, SIGKILL);
                counter_do(bob, counter, "Close");
        }
        await(service_descriptors() <= descriptors);
}

static void test_a_counter_that_is_closed_in_the_middle(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 100; i++) {
                g_autofree char *counter = unattached_open(alice);
                uint64_t cookie = client_send(alice, counter, COUNTER, "AttachProcess", "ua{sv}",
                                              (uint32_t) parent->pid, 2, "procfd", "h",
                                              client_proof(alice, parent->pid), "descendants", "b",
                                              i % 2 == 0);
                g_autoptr(sd_bus_message) reply = NULL;

                g_usleep((gulong) i * 10);
                counter_do(alice, counter, "Close");
                reply = client_receive(alice, cookie);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        SD_BUS_ERROR_UNKNOWN_OBJECT);
                g_assert_false(client_has_answer(alice, cookie)); /* another one */
        }
        await(service_descriptors() <= descriptors);
        writer_write(parent); /* it is not stopped any more */
}

/* polkit decides whether it may be attached. */
static void test_a_counter_that_is_closed_while_polkit_is_asked(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) dave = writer_new("dave"), own = writer_new("alice");
        g_autofree char *counter = unattached_open(alice), *other = unattached_open(alice);
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie;

        rig("polkit-signal STOP", NULL);
        cookie = client_send(alice, counter, COUNTER, "AttachProcess", "ua{sv}",
                             (uint32_t) dave->pid, 0);
        attach(alice, other, own->pid); /* the reader looks at one after another */
        counter_do(alice, counter, "Close");
        rig("polkit-signal CONT", NULL);
        reply = client_receive(alice, cookie);
        g_assert_true(sd_bus_message_is_method_error(reply, SD_BUS_ERROR_UNKNOWN_OBJECT));
        g_assert_nonnull(strstr(sd_bus_message_get_error(reply)->message, "was closed"));
}

static void test_a_client_that_leaves_in_the_middle(void) {
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 50; i++) {
                g_autoptr(Client) alice = client_new("alice");
                g_autofree char *counter = unattached_open(alice);

                (void) client_send(alice, counter, COUNTER, "AttachProcess", "ua{sv}",
                                   (uint32_t) parent->pid, 1, "descendants", "b", true);
                g_usleep((gulong) i * 20);
        }
        await(service_descriptors() <= descriptors);
        writer_write(parent);
}

/* A tree is on its way under a counter while an exclusive hold is granted: either the hold is not
 * confirmed, or the attachment is refused. */
static void test_an_exclusive_hold_in_the_middle(void) {
        g_autoptr(Client) bob = client_new("bob"), root = client_new("root");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("bob", &child);
        unsigned n_refused = 0, n_named = 0;

        for (int i = 0; i < 200; i++) {
                g_autofree char *counter = unattached_open(bob), *hold = NULL;
                g_autoptr(sd_bus_message) reply = NULL;
                _cleanup_close_ int lease = -1;
                uint64_t cookie = client_send(
                        bob, counter, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) parent->pid, 2,
                        "procfd", "h", client_proof(bob, parent->pid), "descendants", "b", true);
                bool attached, confirmed;

                g_usleep((gulong) (i % 40) * 100);
                hold = hold_take(root, &lease, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive",
                                 "best_effort", "b", true);
                confirmed = hold_wait(root, hold);
                reply = client_receive(bob, cookie);
                attached = !sd_bus_message_is_method_error(reply, NULL);
                if (!attached)
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        PERFALLOC_ERROR_BUSY);
                n_refused += !attached;
                g_assert_false(confirmed && attached);
                /* what waits for the tree is in the way, and named */
                g_assert_true(confirmed || hold_names(root, hold, getpid()));
                n_named += !confirmed;
                hold_release(root, hold);
                await(hold_is(root, hold, "ended"));
                counter_do(bob, counter, "Close");
        }
        g_test_message("%u of 200 were refused, %u in the way", n_refused, n_named);
}

#define FAMILY 300 /* to stop them takes a while */

static int play_family(int fd, const void *data) {
        pid_t child = 0;

        for (int i = 0; i < FAMILY; i++) {
                child = fork();
                if (child == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        _exit(pause());
                }
        }
        if (child < 0 || write(fd, &child, sizeof(child)) != sizeof(child))
                return 1;
        (void) act_hear(fd);
        return 0;
}

static bool is_stopped(pid_t pid) {
        g_autofree char *file = g_strdup_printf("/proc/%d/stat", (int) pid), *text = NULL;

        return g_file_get_contents(file, &text, NULL, NULL) && strstr(text, ") t ");
}

/* The same while OpenCounters waits for a tree. */
static void test_an_exclusive_hold_in_the_middle_of_an_opening(void) {
        g_autoptr(Client) bob = client_new("bob"), root = client_new("root");
        g_autoptr(Actor) family = actor_new("bob", play_family, NULL);
        g_autofree char *event = watched_event(0);
        unsigned n_refused = 0, n_named = 0, n_both = 0;
        pid_t child;

        g_assert_cmpint(read(family->fd, &child, sizeof(child)), ==, sizeof(child));
        for (unsigned i = 0; i < 100 && n_both < 20; i++) {
                uint64_t cookie =
                        client_send(bob, MANAGER, "OpenCounters", "asa{sv}", 1, event, 3, "pid",
                                    "u", (uint32_t) family->pid, "procfd", "h",
                                    client_proof(bob, family->pid), "descendants", "b", true);
                g_autoptr(sd_bus_message) reply = NULL;
                g_autofree char *hold = NULL;
                _cleanup_close_ int lease = -1;
                const char *counter;
                bool opened, confirmed;

                while (!is_stopped(child) && !client_has_answer(bob, cookie))
                        ;
                hold = hold_take(root, &lease, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive",
                                 "best_effort", "b", true);
                confirmed = hold_wait(root, hold);
                reply = client_receive(bob, cookie);
                opened = !sd_bus_message_is_method_error(reply, NULL);
                if (!opened)
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        PERFALLOC_ERROR_BUSY);
                n_refused += !opened;
                g_assert_false(confirmed && opened);
                g_assert_true(confirmed || hold_names(root, hold, getpid()));
                n_named += !confirmed;
                n_both += !opened && !confirmed;
                hold_release(root, hold);
                await(hold_is(root, hold, "ended"));
                if (opened) {
                        g_assert_cmpint(sd_bus_message_read(reply, "ao", 1, &counter), >, 0);
                        counter_do(bob, counter, "Close");
                }
        }
        g_test_message("%u were refused, %u in the way", n_refused, n_named);
        g_assert_cmpuint(n_both, >, 0); /* the hold came first, though it is not confirmed */
        actor_tell(family, 'e');
}

/* The service stops one tree for several calls in turn: they do not disturb each other. */
static void test_several_attach_the_same_tree(void) {
        Client *clients[] = { client_new("alice"), client_new("bob"), client_new("root") };
        pid_t child;
        g_autoptr(Actor) parent = parent_new("bob", &child);
        int proof = client_proof(clients[1], parent->pid);

        for (int i = 0; i < 30; i++) {
                char *counters[6];
                uint64_t cookies[6];

                for (size_t k = 0; k < 6; k++) {
                        counters[k] = counter_open(clients[k % 3], "page-faults:u", UNATTACHED);
                        cookies[k] = client_send(clients[k % 3], counters[k], COUNTER,
                                                 "AttachProcess", "ua{sv}", (uint32_t) parent->pid,
                                                 2, "procfd", "h", proof, "descendants", "b", true);
                }
                for (size_t k = 0; k < 6; k++) {
                        g_autoptr(sd_bus_message) reply =
                                client_receive(clients[k % 3], cookies[k]);

                        if (sd_bus_message_is_method_error(reply, NULL))
                                g_error("%s", sd_bus_message_get_error(reply)->message);
                        counter_do(clients[k % 3], counters[k], "Close");
                        g_free(counters[k]);
                }
        }
        for (size_t k = 0; k < G_N_ELEMENTS(clients); k++)
                client_free(g_steal_pointer(&clients[k]));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/attach/tree/living-descendants-count", test_living_descendants_count);
        g_test_add_func("/attach/tree/living-descendants-count-at-opening",
                        test_living_descendants_count_at_opening);
        g_test_add_func("/attach/tree/each-process-has-a-row", test_each_process_has_a_row);
        g_test_add_func("/attach/tree/by-default-as-at-opening",
                        test_descendants_by_default_as_at_opening);
        g_test_add_func("/attach/tree/a-storm-of-forks-is-counted-once",
                        test_a_storm_of_forks_is_counted_once);
        g_test_add_func("/attach/tree/a-storm-of-threads-is-counted-once",
                        test_a_storm_of_threads_is_counted_once);
        g_test_add_func("/attach/tree/what-a-start-missed-is-reached-soon",
                        test_what_a_start_missed_is_reached_soon);
        g_test_add_func("/attach/middle/target-dies", test_a_target_that_dies_in_the_middle);
        g_test_add_func("/attach/middle/counter-is-closed",
                        test_a_counter_that_is_closed_in_the_middle);
        g_test_add_func("/attach/middle/counter-is-closed-while-polkit-is-asked",
                        test_a_counter_that_is_closed_while_polkit_is_asked);
        g_test_add_func("/attach/middle/client-leaves", test_a_client_that_leaves_in_the_middle);
        g_test_add_func("/attach/an-exclusive-hold-in-the-middle",
                        test_an_exclusive_hold_in_the_middle);
        g_test_add_func("/attach/an-exclusive-hold-in-the-middle-of-an-opening",
                        test_an_exclusive_hold_in_the_middle_of_an_opening);
        g_test_add_func("/attach/several-attach-the-same-tree", test_several_attach_the_same_tree);
        return g_test_run();
}
