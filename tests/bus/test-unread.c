/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A client that does not read its replies, which carry descriptors. dbus-daemon reads nothing more
 * from the service once 64 of them lie undelivered; the other clients must not notice.
 */

#include "bus-util.h"

#include <signal.h>
#include <unistd.h>

enum { CALLS = 380, EVERY = 20, CONNECTIONS = 80 };

typedef struct Desk {
        Client *alice, *carol;
        Client *also_alice; /* another connection, which reads */
        char *counter;
        GArray *cookies;
} Desk;

static void desk_up(Desk *d, const void *data) {
        d->alice = client_new("alice");
        d->also_alice = client_new("alice");
        d->carol = client_new("carol");
        d->counter = counter_open(d->alice, "page-faults:u", "a{sv}", 1, "attach", "b", 1);
        d->cookies = g_array_new(false, false, sizeof(uint64_t));
}

static void desk_down(Desk *d, const void *data) {
        g_free(d->counter);
        g_array_unref(d->cookies);
        client_free(d->alice);
        client_free(d->also_alice);
        client_free(d->carol);
}

/* Waits no longer than a test waits for anything. */
static sd_bus_message *answer(Client *c, uint64_t cookie) {
        sd_bus_message *reply;

        await(client_has_answer(c, cookie));
        reply = client_receive(c, cookie);
        if (sd_bus_message_get_error(reply))
                g_error("%s", sd_bus_message_get_error(reply)->message);
        return reply;
}

static void release(Client *c, const char *hold) {
        sd_bus_message_unref(answer(c, client_send(c, hold, HOLD, "Release", NULL)));
}

static void assert_served(Client *c) {
        g_autoptr(sd_bus_message) reply =
                answer(c, client_send(c, MANAGER, "Hold", "sa{sv}", "hers", 1, BREAKPOINTS));
        const char *path;
        int lease;

        bus_check(sd_bus_message_read(reply, "oh", &path, &lease), "Hold");
        sd_bus_message_unref(answer(c, client_send(c, path, HOLD, "Wait", NULL)));
        release(c, path);
}

/* All are sent, none of the answers is read. */
static void ask_for_descriptors(Desk *d, Client *c, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                uint64_t cookie = client_send(c, d->counter, COUNTER, "GetFds", NULL);

                g_array_append_val(d->cookies, cookie);
        }
        bus_check(sd_bus_flush(c->bus), "GetFds");
}

/* polkit is asked for a user's calls in their order: all earlier calls have been answered, or wait
 * for room. So the bus, which lets a connection await 128 replies, refuses none of the next ones.
 */
static void await_authorized(Client *same_user) {
        g_autoptr(sd_bus_message) reply =
                answer(same_user, client_send(same_user, MANAGER, "HoldUnattended", "sta{sv}",
                                              "a test", UINT64_C(0), 1, BREAKPOINTS));
        const char *path;

        bus_check(sd_bus_message_read(reply, "o", &path), "HoldUnattended");
        release(same_user, path);
}

static void test_others_are_served(Desk *d, const void *data) {
        for (unsigned sent = 0; sent < CALLS; sent += EVERY) {
                ask_for_descriptors(d, d->alice, EVERY);
                assert_served(d->carol);
                await_authorized(d->also_alice);
        }
        assert_served(d->carol);
}

/* Whose descriptors wait gets them all once it reads. */
static void test_nothing_is_lost(Desk *d, const void *data) {
        test_others_are_served(d, NULL);
        for (unsigned i = 0; i < d->cookies->len; i++) {
                g_autoptr(sd_bus_message) reply =
                        client_receive(d->alice, g_array_index(d->cookies, uint64_t, i));
                int fd;

                g_assert_null(sd_bus_message_get_error(reply));
                bus_check(sd_bus_message_enter_container(reply, 'a', "h"), "GetFds");
                bus_check(sd_bus_message_read_basic(reply, 'h', &fd), "GetFds");
        }
}

/* A connection that reads is served beside another one of the same user that does not. */
static void test_own_connections(Desk *d, const void *data) {
        test_others_are_served(d, NULL);
        assert_served(d->also_alice);
        assert_served(d->carol);
}

/* Each has room for what it is sent, and the first replies have filled the rest. */
static void test_many_connections(Desk *d, const void *data) {
        g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func((GDestroyNotify) client_free);

        for (unsigned i = 0; i < CONNECTIONS; i++)
                g_ptr_array_add(clients, client_new("alice"));
        for (unsigned round = 0; round < 5; round++) {
                for (unsigned i = 0; i < CONNECTIONS; i++)
                        ask_for_descriptors(d, clients->pdata[i], 100);
                assert_served(d->carol);
        }
        assert_served(d->carol);
}

/* What waits is charged to its user, who is told which limit it is. */
static void test_limit(Desk *d, const void *data) {
        unsigned n_refused = 0;

        /* more than are sent at once, all of which may be waiting for polkit */
        rig_configure("[Limits]\nPendingCallsPerUser=40\n");
        desk_down(d, NULL);
        desk_up(d, NULL);
        test_others_are_served(d, NULL);
        for (unsigned i = 0; i < d->cookies->len; i++) {
                g_autoptr(sd_bus_message) reply =
                        client_receive(d->alice, g_array_index(d->cookies, uint64_t, i));
                const sd_bus_error *e = sd_bus_message_get_error(reply);

                if (!e)
                        continue;
                g_assert_cmpstr(e->name, ==, SD_BUS_ERROR_LIMITS_EXCEEDED);
                g_assert_nonnull(strstr(e->message, "PendingCallsPerUser="));
                n_refused++;
        }
        g_assert_cmpuint(n_refused, >, 0);
        assert_served(d->alice);
        rig_configure("");
}

/* The service asks the bus to tell of a new caller's leaving, and the bus does not answer. */
static void test_bus_that_pauses(Desk *d, const void *data) {
        enum { TIMEOUT_MSEC = 300 };
        g_autoptr(Client) first = NULL, second = NULL;
        pid_t bus = bus_pid(d->carol), service;
        uint64_t cookie;

        rig("service-stop", NULL);
        rig("service-start SYSTEMD_BUS_TIMEOUT=300ms", NULL);
        service = service_pid();
        first = client_new("carol");
        second = client_new("carol");
        assert_served(first);
        bus_check(kill(service, SIGSTOP) < 0 ? -errno : 0, "stop the service");
        cookie = client_send(second, MANAGER, "HasSamplers", NULL);
        bus_check(sd_bus_flush(second->bus), "HasSamplers");
        (void) bus_pid(second); /* the call has gone on to the service */
        bus_check(kill(bus, SIGSTOP) < 0 ? -errno : 0, "stop the bus");
        bus_check(kill(service, SIGCONT) < 0 ? -errno : 0, "continue the service");
        g_usleep(3 * TIMEOUT_MSEC * 1000); /* any longer time would do, too */
        bus_check(kill(bus, SIGCONT) < 0 ? -errno : 0, "continue the bus");
        await(client_has_answer(second, cookie));
        g_assert_cmpint(service_pid(), ==, service);
        rig("service-stop", NULL);
        rig("service-start", NULL);
}

static bool is_gone(pid_t pid) {
        return kill(pid, 0) < 0;
}

/* Waits until it does nothing for a while, as it waits for others. */
static void await_rest(pid_t pid) {
        unsigned n = 0;

        await((n = process_is_asleep(pid) ? n + 1 : 0) >= 200);
}

/* A reply with all of them has half a megabyte. */
static void open_many(Client *c) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");

        bus_check(sd_bus_message_open_container(m, 'a', "s"), "OpenCounters");
        for (unsigned i = 0; i < 1000; i++)
                bus_check(sd_bus_message_append(m, "s", "page-faults:u"), "OpenCounters");
        bus_check(sd_bus_message_close_container(m), "OpenCounters");
        bus_check(sd_bus_message_append(m, "a{sv}", 1, "attach", "b", 0), "OpenCounters");
        sd_bus_message_unref(client_call_message(c, m));
}

/* The bus reads nothing more of the service, which is told to end. */
static void test_stop(Desk *d, const void *data) {
        enum { REPLIES = 60 }; /* more than a socket takes: 8 MiB, if net.core.wmem_max allows it */
        g_autoptr(Client) root = client_new("root");
        pid_t bus = bus_pid(root), service = service_pid();

        open_many(root);
        await_rest(service);
        bus_check(kill(service, SIGSTOP) < 0 ? -errno : 0, "stop the service");
        for (unsigned i = 0; i < REPLIES; i++)
                (void) client_send(root, PERFALLOC_OBJECT_PATH,
                                   "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL);
        (void) bus_pid(root); /* the calls have gone on to the service */
        bus_check(kill(bus, SIGSTOP) < 0 ? -errno : 0, "stop the bus");
        bus_check(kill(service, SIGCONT) < 0 ? -errno : 0, "continue the service");
        await_rest(service);
        bus_check(kill(service, SIGTERM) < 0 ? -errno : 0, "end the service");
        await(is_gone(service));
        g_assert_cmpuint(service_said("messages were not sent at the end"), ==, 1);
        bus_check(kill(bus, SIGCONT) < 0 ? -errno : 0, "continue the bus");
        rig("service-start", NULL);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
#define ADD(path, test) g_test_add("/unread/" path, Desk, NULL, desk_up, test, desk_down)
        ADD("others-are-served", test_others_are_served);
        ADD("nothing-is-lost", test_nothing_is_lost);
        ADD("own-connections-are-served", test_own_connections);
        ADD("many-connections-stop-nobody", test_many_connections);
        ADD("who-has-too-many-waiting-is-told", test_limit);
        ADD("bus-that-pauses-is-waited-for", test_bus_that_pauses);
        ADD("stop-does-not-wait-for-those-who-do-not-read", test_stop);
#undef ADD
        return g_test_run();
}
