/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Many holds and many clients leave no descriptor, object or yielded monitor behind. */

#include "bus-util.h"

#include <fcntl.h>
#include <signal.h>

enum { MONITORS = 4, ROW = 1000, CONNECTIONS = 10, EACH = 20, ROUNDS = 3, KILLED = 100 };

typedef struct Fixture {
        Client *root;
        char *monitors[MONITORS];
        unsigned descriptors;
} Fixture;

/* What the service keeps after its first use. */
static void hold_once(Client *c) {
        g_autofree char *path = NULL;
        int lease;

        path = hold_take(c, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(c, path));
        close_fd(lease);
        await(hold_is(c, path, "ended"));
}

static void fixture_set_up(Fixture *f, const void *data) {
        f->root = client_new("root");
        hold_once(f->root);
        for (size_t i = 0; i < MONITORS; i++)
                f->monitors[i] = monitor_open(f->root, i, 0);
        f->descriptors = service_descriptors();
}

/* The number of holds that have not ended; ended ones can be read for a while. */
static unsigned active_holds(Client *c) {
        g_autoptr(sd_bus_message) reply =
                client_call(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", NULL);
        unsigned n = 0;
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), >, 0);
        while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                g_assert_cmpint(sd_bus_message_read(reply, "o", &path), >, 0);
                if (strstr(path, "/hold/")) {
                        g_autofree char *state = object_read(reply, HOLD, "State");

                        n += strcmp(state, "ended") != 0;
                } else
                        g_assert_cmpint(sd_bus_message_skip(reply, "a{sa{sv}}"), >=, 0);
                g_assert_cmpint(sd_bus_message_exit_container(reply), >=, 0);
        }
        return n;
}

static void fixture_tear_down(Fixture *f, const void *data) {
        await(active_holds(f->root) == 0);
        await(client_count(f->root, "counter") == MONITORS);
        await(service_descriptors() <= f->descriptors);
        g_assert_cmpuint(client_get_number(f->root, MANAGER, "Yielding", 'b'), ==, 0);
        for (size_t i = 0; i < MONITORS; i++) {
                await(counter_is(f->root, f->monitors[i], "counting"));
                g_free(f->monitors[i]);
        }
        client_free(f->root);
}

static void test_row(Fixture *f, const void *data) {
        for (unsigned i = 0; i < ROW; i++) {
                g_autofree char *path = NULL;
                int lease;

                path = hold_take(f->root, &lease, "a{sv}", 1, BREAKPOINTS);
                g_assert_true(hold_wait(f->root, path));
                close_fd(lease);
                if (i % 100 == 0) /* the service may not have noticed yet which leases are closed */
                        await(client_count(f->root, "hold") <= 64);
        }
}

/* Each connection asks for all its holds before it reads an answer. */
static void test_at_once(Fixture *f, const void *data) {
        static const char *const users[] = { "root", "alice", "carol" };
        uint64_t cookies[CONNECTIONS][EACH];
        char *paths[CONNECTIONS][EACH];
        int leases[CONNECTIONS][EACH];
        Client *clients[CONNECTIONS];

        for (size_t i = 0; i < CONNECTIONS; i++)
                clients[i] = client_new(users[i % G_N_ELEMENTS(users)]);
        for (size_t j = 0; j < EACH; j++)
                for (size_t i = 0; i < CONNECTIONS; i++)
                        cookies[i][j] = client_send(clients[i], MANAGER, "Hold", "sa{sv}",
                                                    "one of many", 1, BREAKPOINTS);
        for (size_t i = 0; i < CONNECTIONS; i++)
                for (size_t j = 0; j < EACH; j++) {
                        g_autoptr(sd_bus_message) reply = client_receive(clients[i], cookies[i][j]);
                        const char *path;
                        int lease;

                        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
                        paths[i][j] = g_strdup(path);
                        leases[i][j] = fcntl(lease, F_DUPFD_CLOEXEC, 3);
                }
        for (size_t i = 0; i < CONNECTIONS; i++)
                for (size_t j = 0; j < EACH; j++)
                        g_assert_true(hold_wait(clients[i], paths[i][j]));
        g_assert_cmpuint(active_holds(f->root), ==, CONNECTIONS * EACH);
        for (size_t i = 0; i < MONITORS; i++)
                g_assert_true(counter_is(f->root, f->monitors[i], "yielded"));
        for (size_t i = 0; i < CONNECTIONS; i++) {
                for (size_t j = 0; j < EACH; j++) {
                        close_fd(leases[i][j]);
                        g_free(paths[i][j]);
                }
                client_free(clients[i]);
        }
}

typedef struct Play {
        bool waits; /* for the answers; otherwise it is killed while polkit is being asked */
} Play;

static int play_client(int fd, const void *data) {
        const Play *play = data;
        g_autoptr(Client) me = client_new("alice");
        g_autofree char *path = NULL, *counter = NULL;
        int lease;

        (void) client_send(me, MANAGER, "HoldUnattended", "sta{sv}", "for a moment",
                           30 * USEC_PER_SEC, 1, "no_such_option", "b", 1);
        if (play->waits) {
                path = hold_take(me, &lease, "a{sv}", 1, BREAKPOINTS);
                counter = counter_open(me, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "role",
                                       "s", "monitor");
                (void) client_send(me, path, HOLD, "Wait", NULL);
        } else {
                (void) client_send(me, MANAGER, "Hold", "sa{sv}", "for a moment", 1, BREAKPOINTS);
                (void) client_send(me, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                                   "scope", "s", "cpu");
        }
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

static void test_killed(Fixture *f, const void *data) {
        for (unsigned round = 0; round < ROUNDS; round++) {
                Actor *clients[KILLED];

                for (size_t i = 0; i < KILLED; i++)
                        clients[i] = actor_new("alice", play_client, &(Play){ .waits = i % 2 });
                for (size_t i = 0; i < KILLED; i++)
                        g_assert_cmpint(actor_hear(clients[i]), ==, 'o');
                for (size_t i = 0; i < KILLED; i++)
                        g_assert_cmpint(kill(clients[i]->pid, SIGKILL), ==, 0);
                for (size_t i = 0; i < KILLED; i++)
                        actor_free(clients[i]);
        }
}

#define ADD(name, test)                                                                            \
        g_test_add("/many/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("a-thousand-holds-in-a-row", test_row);
        ADD("two-hundred-holds-at-once", test_at_once);
        ADD("three-hundred-clients-killed", test_killed);
        return g_test_run();
}
