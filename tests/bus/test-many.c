/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Many holds and many clients leave no descriptor, object or yielded monitor behind, and do
 * not delay others. */

#include "bus-util.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

enum { MONITORS = 4, ROW = 1000, CONNECTIONS = 10, EACH = 20, ROUNDS = 3, KILLED = 100 };
enum { FEW = 1000, FOLD = 4, TRIALS = 3, HOLD_FACTOR = 2 };

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
                if (i % 100 == 0)
                        g_assert_cmpuint(client_count(f->root, "hold"), <=, 64 + 1);
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

/* ---- what it costs ---- */

static uint64_t service_nsec(void) {
        struct timespec t;
        clockid_t clock;

        g_assert_cmpint(clock_getcpuclockid(service_pid(), &clock), ==, 0);
        g_assert_cmpint(clock_gettime(clock, &t), ==, 0);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

static sd_bus_message *opening_new(Client *c, unsigned n, const char *role, bool start) {
        sd_bus_message *m = client_message(c, MANAGER, "OpenCounters");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        while (n-- > 0)
                g_assert_cmpint(sd_bus_message_append(m, "s", "dummy"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 4, "scope", "s", "cpu", "cpus", "s", "0",
                                              "role", "s", role, "start", "b", (int) start),
                        >=, 0);
        return m;
}

static void monitors_open_many(Client *c, unsigned n) {
        sd_bus_message_unref(client_call_message(c, opening_new(c, n, "monitor", false)));
}

/* CPU time that the service takes for a client with many monitors that leaves. They are stopped:
 * what the kernel takes to remove an event that counts grows with the number of others. */
static uint64_t leaving_nsec(Client *other, unsigned before) {
        Client *c = client_new("root");
        uint64_t begin;

        for (unsigned i = 0; i < FOLD; i++)
                monitors_open_many(c, FEW);
        begin = service_nsec();
        client_free(c);
        await(service_descriptors() <= before);
        client_greet(other); /* it has done the rest too */
        return service_nsec() - begin;
}

/* The least of some: what else runs on this machine only adds to it. */
static uint64_t leaving_nsec_least(Client *other) {
        unsigned before = service_descriptors();
        uint64_t least = UINT64_MAX;

        for (unsigned i = 0; i < TRIALS; i++)
                least = MIN(least, leaving_nsec(other, before));
        return least;
}

/* Who yields is computed once for all that leave, and without a hold not at all. */
static void test_leaving_cost(Fixture *f, const void *data) {
        uint64_t free = leaving_nsec_least(f->root), held;
        g_autofree char *path = NULL;
        int lease;

        path = hold_take(f->root, &lease, "a{sv}", 1, "pmus", "as", 1, "software");
        g_assert_true(hold_wait(f->root, path));
        held = leaving_nsec_least(f->root);
        g_test_message("%" PRIu64 " us; under a hold %" PRIu64 " us", free / 1000, held / 1000);
        g_assert_cmpuint(held, <, free * HOLD_FACTOR);
        close_fd(lease);
}

/* ---- others meanwhile ---- */

static int on_opened(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        g_assert_cmpint(sd_bus_message_get_errno(m), ==, 0);
        *(bool *) userdata = true;
        return 1;
}

/* The kernel takes the longer to start an event the more count on its CPU. Told in CPU time of the
 * service: how much of it passes while another client waits for an answer. */
static void test_opening_delays_nobody(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root");
        uint64_t begin, worst = 0;
        sd_bus_message *m;
        bool opened = false;

        sd_bus_message_unref(client_call_message(c, opening_new(c, FEW, "foreground", true)));
        sd_bus_message_unref(client_call_message(c, opening_new(c, FEW, "foreground", true)));
        m = opening_new(c, FEW, "foreground", true);
        client_greet(f->root);
        begin = service_nsec();
        g_assert_cmpint(sd_bus_call_async(c->bus, NULL, m, on_opened, &opened, UINT64_MAX), >=, 0);
        g_assert_cmpint(sd_bus_flush(c->bus), >=, 0);
        while (!opened) {
                uint64_t before = service_nsec();

                client_greet(f->root);
                worst = MAX(worst, service_nsec() - before);
                while (sd_bus_process(c->bus, NULL) > 0)
                        ;
        }
        g_test_message("%" PRIu64 " us of %" PRIu64 " us", worst / 1000,
                       (service_nsec() - begin) / 1000);
        g_assert_cmpuint(worst, <, (service_nsec() - begin) / 4);
        sd_bus_message_unref(m);
}

#define ADD(name, test)                                                                            \
        g_test_add("/many/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("a-thousand-holds-in-a-row", test_row);
        ADD("two-hundred-holds-at-once", test_at_once);
        ADD("leaving-costs-no-more-under-a-hold", test_leaving_cost);
        ADD("opening-many-counters-delays-nobody", test_opening_delays_nobody);
        ADD("three-hundred-clients-killed", test_killed);
        return g_test_run();
}
