/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Long calls are made in slices: other clients are answered meanwhile. Answers are counted, not
 * their time. */

#include "bus-util.h"
#include "cpu-switch.h"

#include <signal.h>

static const char *cpus = "0"; /* of what is opened */

/* Closing takes 2 µs on the service's own CPU. */
enum { MANY = 1000, ANSWERS_MIN = 4, LEFT = 12 };

typedef struct Fixture {
        Client *other;
        unsigned descriptors;
} Fixture;

static void fixture_set_up(Fixture *f, const void *data) {
        f->other = client_new("root");
        client_greet(f->other);
        f->descriptors = service_descriptors();
}

static void fixture_tear_down(Fixture *f, const void *data) {
        await(client_count(f->other, "counter") == 0);
        await(service_descriptors() <= f->descriptors);
        client_free(f->other);
}

/* MANY counters of a CPU. */
static sd_bus_message *opening_new(Client *c, const char *role, bool start) {
        sd_bus_message *m = client_message(c, MANAGER, "OpenCounters");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (unsigned i = 0; i < MANY; i++)
                g_assert_cmpint(sd_bus_message_append(m, "s", "dummy"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 4, "scope", "s", "cpu", "cpus", "s", cpus,
                                              "role", "s", role, "start", "b", (int) start),
                        >=, 0);
        return m;
}

static void counters_open(Client *c, const char *role, bool start) {
        g_autoptr(sd_bus_message) m = opening_new(c, role, start);

        sd_bus_message_unref(client_call_message(c, m));
}

/* Calls of the other client that are answered until this one is. In one turn it would be one, and
 * another one while the answer is on its way. */
static unsigned answers_until(Client *other, Client *c, uint64_t cookie) {
        unsigned n = 0;

        for (; !client_has_answer(c, cookie); n++)
                client_greet(other);
        sd_bus_message_unref(client_receive(c, cookie));
        return n;
}

/* ---- opening ---- */

/* The more events count on a CPU, the longer the kernel takes to start one. */
static void test_opening(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root");
        unsigned n;

        counters_open(c, "foreground", true);
        counters_open(c, "foreground", true);
        client_greet(f->other);
        n = answers_until(f->other, c, client_send_message(c, opening_new(c, "foreground", true)));
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
}

/* A user who has just had much of the service's time is queued, and comes to their turn too. */
static void test_opening_beside_a_queue(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), busy = client_new("alice");
        uint64_t cookie;
        unsigned n;

        for (unsigned i = 0; i < 2; i++)
                counters_open(c, "foreground", true);
        for (unsigned i = 0; i < 4; i++)
                counters_open(busy, "foreground", false);
        cookie = client_send_message(c, opening_new(c, "foreground", true));
        n = answers_until(busy, c, cookie);
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
}

static void test_opening_client_leaves(Fixture *f, const void *data) {
        Client *c = client_new("root");
        uint64_t cookie;

        counters_open(c, "foreground", true);
        cookie = client_send_message(c, opening_new(c, "foreground", true));
        client_greet(f->other);
        g_assert_false(client_has_answer(c, cookie));
        client_free(c);
}

static void test_opening_exclusive_hold(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), holder = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        g_autofree char *path = NULL;
        uint64_t cookie;
        int lease;

        counters_open(c, "foreground", true);
        counters_open(c, "foreground", true);
        cookie = client_send_message(c, opening_new(c, "foreground", true));
        path = hold_take(holder, &lease, "a{sv}", 3, "pmus", "as", 1, "software", "mode", "s",
                         "exclusive", "best_effort", "b", 1);
        reply = client_receive(c, cookie);
        g_assert_true(sd_bus_message_is_method_error(reply, PERFALLOC_ERROR_BUSY));
        await(service_events() == 2 * MANY);
        close_fd(lease);
}

static bool is_error(sd_bus_message *reply) {
        return sd_bus_message_is_method_error(reply, NULL);
}

/* Ways to restart, in the midst: all are there or none is, and who has no reply cannot know. */
static void test_opening_restart(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root");
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie, n;

        counters_open(c, "foreground", true);
        counters_open(c, "foreground", true);
        cookie = client_send_message(c, opening_new(c, "foreground", true));
        client_greet(f->other);
        rig(data, NULL);
        reply = client_receive(c, cookie);
        n = client_count(f->other, "counter");
        g_test_message("%s, %u counters",
                       is_error(reply) ? sd_bus_message_get_error(reply)->name : "opened",
                       (unsigned) n);
        g_assert_true(n == 3 * MANY || (is_error(reply) && n == 2 * MANY));
        await(service_events() == n);
}

/* A CPU that goes in the midst takes its parts with it, and has all of them when it is back. */
static void test_opening_cpu_goes(Fixture *f, const void *data) {
        g_autoptr(Client) c = NULL;
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie;
        int lock;

        if (!cpu_switch(true)) {
                g_test_skip("no CPU can be switched off here");
                return;
        }
        lock = machine_lock();
        c = client_new("root");
        cpus = "0-1";
        cookie = client_send_message(c, opening_new(c, "foreground", true));
        cpus = "0";
        client_greet(f->other);
        cpu_must_switch(false);
        reply = client_receive(c, cookie);
        g_assert_false(is_error(reply));
        g_assert_cmpuint(client_count(f->other, "counter"), ==, MANY);
        await(service_events() == MANY);
        cpu_must_switch(true);
        await(service_events() == 2 * MANY);
        close_fd(lock);
}

/* ---- GetManagedObjects ---- */

static uint64_t objects_ask(Client *c) {
        return client_send(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                           "GetManagedObjects", NULL);
}

static void test_objects(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), another = client_new("bob");
        uint64_t cookie;
        unsigned n;

        for (unsigned i = 0; i < 4; i++)
                counters_open(c, "foreground", false);
        g_assert_cmpuint(client_count(f->other, "counter"), ==, 4 * MANY);
        client_greet(another);
        cookie = objects_ask(another);
        n = answers_until(f->other, c, objects_ask(c));
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
        sd_bus_message_unref(client_receive(another, cookie));
}

/* What a client knows that follows the signals: the counters by path, each with its State. */
typedef GHashTable View;

static View *view_new(sd_bus_message *reply) {
        View *v = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        const char *path = NULL;

        while (objects_next(reply, &path))
                if (strstr(path, "/counter/"))
                        g_assert_true(g_hash_table_insert(v, g_strdup(path),
                                                          object_read(reply, COUNTER, "State")));
                else
                        g_assert_cmpint(sd_bus_message_skip(reply, "a{sa{sv}}"), >=, 0);
        return v;
}

/* Nothing is told twice. A counter may be closed before its turn in the reply came. */
static void view_follow(View *v, sd_bus_message *m) {
        const char *path = sd_bus_message_get_path(m);

        if (sd_bus_message_is_signal(m, NULL, "InterfacesAdded")) {
                g_assert_cmpint(sd_bus_message_read(m, "o", &path), >, 0);
                if (strstr(path, "/counter/"))
                        g_assert_true(g_hash_table_insert(v, g_strdup(path),
                                                          object_read(m, COUNTER, "State")));
        } else if (sd_bus_message_is_signal(m, NULL, "InterfacesRemoved")) {
                g_assert_cmpint(sd_bus_message_read(m, "o", &path), >, 0);
                (void) g_hash_table_remove(v, path);
        } else if (sd_bus_message_is_signal(m, NULL, "PropertiesChanged") &&
                   strstr(path, "/counter/")) {
                g_assert_cmpint(sd_bus_message_skip(m, "s"), >=, 0);
                g_assert_true(g_hash_table_contains(v, path));
                (void) g_hash_table_insert(v, g_strdup(path), properties_read(m, "State"));
        }
}

/* Ignores what comes before the reply: it is in it. */
static View *view_receive(Client *c, uint64_t cookie) {
        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC);
                uint64_t answered;

                g_assert_nonnull(m);
                if (sd_bus_message_get_reply_cookie(m, &answered) >= 0 && answered == cookie)
                        return view_new(m);
        }
}

/* Follows the signals until the counter is told to have this State; NULL: to be closed. */
static void view_await(View *v, Client *c, const char *path, const char *state) {
        while (g_strcmp0(g_hash_table_lookup(v, path), state) != 0) {
                g_autoptr(sd_bus_message) m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC);

                g_assert_nonnull(m);
                view_follow(v, m);
        }
}

/* Changes of counters that are in the reply already, and of others that are not. */
static void test_objects_changing(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), watcher = client_new("root");
        g_autofree char *first = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        g_autofree char *second = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        g_autofree char *last = NULL, *added = NULL;
        g_autoptr(GHashTable) v = NULL;
        uint64_t cookie;

        for (unsigned i = 0; i < 4; i++)
                counters_open(c, "foreground", false);
        last = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        client_watch(watcher);
        client_greet(watcher);
        sd_bus_message_unref(client_receive(watcher, objects_ask(watcher))); /* all is told */
        cookie = objects_ask(watcher);
        client_greet(f->other);
        counter_do(c, first, "Close");
        counter_do(c, second, "Stop");
        counter_do(c, last, "Close");
        added = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        g_assert_false(client_has_answer(watcher, cookie));
        v = view_receive(watcher, cookie);
        g_assert_cmpstr(g_hash_table_lookup(v, first), ==, "counting");
        g_assert_false(g_hash_table_contains(v, added));
        view_await(v, watcher, second, "stopped");
        view_await(v, watcher, added, "counting");
        g_assert_false(g_hash_table_contains(v, first));
        g_assert_false(g_hash_table_contains(v, last));
        g_assert_cmpuint(g_hash_table_size(v), ==, client_count(f->other, "counter"));
}

/* Signals go on when the caller has left. */
static void test_objects_client_leaves(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), watcher = client_new("root");
        g_autofree char *path = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        Client *asking = client_new("root");
        g_autoptr(GHashTable) v = NULL;

        for (unsigned i = 0; i < 4; i++)
                counters_open(c, "foreground", false);
        client_watch(watcher);
        client_greet(asking);
        v = view_receive(watcher, objects_ask(watcher));
        (void) objects_ask(asking);
        (void) objects_ask(asking);
        client_greet(f->other);
        client_free(asking);
        counter_do(c, path, "Close");
        view_await(v, watcher, path, NULL);
}

/* ---- a client that leaves ---- */

static bool bus_knows(Client *c, const char *name) {
        g_autoptr(sd_bus_message) reply = NULL;
        int knows;

        bus_check(sd_bus_call_method(c->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                     "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                                     name),
                  "NameHasOwner");
        bus_check(sd_bus_message_read_basic(reply, 'b', &knows), "NameHasOwner");
        return knows;
}

/* The service stands still until it has both to read: that the client has left, and what is sent
 * before go_on(). */
static void leave(Fixture *f, Client *c) {
        g_autofree char *name = g_strdup(c->name);

        g_assert_cmpint(kill(service_pid(), SIGSTOP), ==, 0);
        client_free(c);
        await(!bus_knows(f->other, name));
}

static void go_on(Client *sender) {
        g_assert_true(bus_knows(sender, sender->name)); /* the bus has passed on what was sent */
        g_assert_cmpint(kill(service_pid(), SIGCONT), ==, 0);
}

/* Others are answered before all is closed: the oldest counter is still there. */
static void leave_slowly(Fixture *f, Client *c, const char *oldest) {
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie;

        leave(f, c);
        cookie = client_send(f->other, oldest, "org.freedesktop.DBus.Properties", "Get", "ss",
                             COUNTER, "State");
        go_on(f->other);
        reply = client_receive(f->other, cookie);
        g_assert_false(sd_bus_message_is_method_error(reply, NULL));
        await(!client_finds(f->other, oldest, COUNTER));
}

static void test_leaving(Fixture *f, const void *data) {
        Client *c = client_new("root");
        g_autofree char *oldest = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");

        for (unsigned i = 0; i < LEFT; i++)
                counters_open(c, "foreground", false);
        leave_slowly(f, c, oldest);
}

static void test_leaving_monitors(Fixture *f, const void *data) {
        Client *c = client_new("root");
        g_autofree char *oldest =
                counter_open(c, "dummy", "a{sv}", 2, "scope", "s", "cpu", "role", "s", "monitor");
        g_autofree char *path = NULL;
        int lease;

        for (unsigned i = 0; i < LEFT; i++)
                counters_open(c, "monitor", false);
        path = hold_take(f->other, &lease, "a{sv}", 1, "pmus", "as", 1, "software");
        g_assert_true(hold_wait(f->other, path));
        leave_slowly(f, c, oldest);
        close_fd(lease);
}

/* What a user's earlier client has left is not held against the next one. */
static void test_leaving_limit(Fixture *f, const void *data) {
        g_autoptr(Client) next = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        Client *c = client_new("alice");
        uint64_t cookie;

        counters_open(next, "foreground", false); /* polkit has said yes */
        for (unsigned i = 0; i < 3; i++)
                counters_open(c, "foreground", false);
        leave(f, c);
        cookie = client_send_message(next, opening_new(next, "foreground", false));
        go_on(next);
        reply = client_receive(next, cookie);
        g_assert_false(sd_bus_message_is_method_error(reply, NULL));
}

/* Nor is it in the way of a hold. */
static void test_leaving_and_a_hold(Fixture *f, const void *data) {
        g_autoptr(sd_bus_message) reply = NULL;
        Client *c = client_new("alice");
        uint64_t cookie;
        const char *path;
        int lease;

        for (unsigned i = 0; i < 4; i++)
                counters_open(c, "foreground", false);
        leave(f, c);
        cookie = client_send(f->other, MANAGER, "Hold", "sa{sv}", "test", 2, "pmus", "as", 1,
                             "software", "mode", "s", "exclusive");
        go_on(f->other);
        reply = client_receive(f->other, cookie);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
        g_assert_true(hold_wait(f->other, path));
        hold_release(f->other, path);
}

/* ---- monitors of a hold ---- */

enum { CROWDS = 4 }; /* of monitors */

/* A client with monitors that count, on CPU 0 (or another one); first and last are told first and
 * last. */
typedef struct Crowd {
        Client *client;
        char *first, *last;
        uint64_t enabled; /* of the last, when it was looked at */
} Crowd;

static char *crowd_counter(Client *c) {
        return counter_open(c, "dummy", "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", cpus, "role",
                            "s", "monitor");
}

static void crowd_up(Crowd *crowd) {
        crowd->client = client_new("root");
        crowd->first = crowd_counter(crowd->client);
        for (unsigned i = 0; i < CROWDS; i++)
                counters_open(crowd->client, "monitor", true);
        crowd->last = crowd_counter(crowd->client);
        crowd->enabled = 0;
}

static void crowd_down(Crowd *crowd) {
        if (crowd->client)
                client_free(crowd->client);
        g_free(crowd->first);
        g_free(crowd->last);
}

/* Values never go back. */
static void crowd_look(Crowd *crowd) {
        g_auto(Measured) m = counter_read(crowd->client, crowd->last);

        g_assert_cmpuint(m.enabled, >=, crowd->enabled);
        crowd->enabled = m.enabled;
}

static void crowd_assert_stands(Crowd *crowd) {
        uint64_t before;

        g_assert_true(counter_is(crowd->client, crowd->first, "yielded"));
        g_assert_true(counter_is(crowd->client, crowd->last, "yielded"));
        crowd_look(crowd);
        before = crowd->enabled;
        crowd_look(crowd);
        g_assert_cmpuint(crowd->enabled, ==, before);
}

static void crowd_await(Crowd *crowd) {
        await(counter_is(crowd->client, crowd->last, "counting"));
        g_assert_true(counter_is(crowd->client, crowd->first, "counting"));
        crowd_look(crowd);
}

static char *crowd_hold(Client *c, int *ret_lease) {
        return hold_take(c, ret_lease, "a{sv}", 1, "pmus", "as", 1, "software");
}

static void hold_end_by_lease(Client *c, const char *path, int lease) {
        close_fd(lease);
        await(!hold_is(c, path, "granted"));
}

/* To yield takes only a few slices: a slow client may come too late. */
static void crowd_note_midway(Crowd *crowd) {
        bool midway = counter_is(crowd->client, crowd->last, "counting");

        g_test_message("%s", midway ? "midway" : "all have yielded already");
}

/* Calls that are answered before the last monitor has resumed. */
static unsigned answers_until_counting(Client *other, Crowd *crowd) {
        unsigned n = 0;

        for (; counter_is(crowd->client, crowd->last, "yielded"); n++)
                client_greet(other);
        return n;
}

/* Calls that arrive together with Hold and are answered before the grant. In one turn it would be
 * none. */
static unsigned answers_until_granted(Client *holder, char **ret_path) {
        unsigned n = 0;

        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(holder, AWAIT_SEC * G_USEC_PER_SEC);
                const char *path;

                g_assert_nonnull(m);
                if (sd_bus_message_is_signal(m, NULL, "HoldGranted")) {
                        bus_check(sd_bus_message_read_basic(m, 'o', &path), "HoldGranted");
                        *ret_path = g_strdup(path);
                        return n;
                }
                n += sd_bus_message_get_reply_cookie(m, &(uint64_t){ 0 }) >= 0;
        }
}

static void test_yielding(Fixture *f, const void *data) {
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *path = NULL;
        Crowd crowd;
        unsigned n;

        cpus = n_cpus() > 1 ? "0-1" : "0";
        crowd_up(&crowd);
        cpus = "0";
        client_watch(holder);
        client_greet(holder);
        g_assert_cmpint(kill(service_pid(), SIGSTOP), ==, 0);
        (void) client_send(holder, MANAGER, "HoldUnattended", "sta{sv}", "test", (uint64_t) 0, 1,
                           "pmus", "as", 1, "software");
        for (unsigned i = 0; i < ANSWERS_MIN; i++)
                (void) client_send(holder, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.Peer",
                                   "Ping", NULL);
        go_on(holder);
        n = answers_until_granted(holder, &path);
        g_test_message("%u answers while monitors yield", n);
        g_assert_cmpuint(n, >, 1); /* one is Hold's */
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        n = answers_until_counting(f->other, &crowd);
        g_test_message("%u answers while they resume", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
        crowd_await(&crowd);
        crowd_down(&crowd);
}

/* A user who is queued comes to their turn too. */
static void test_resuming_beside_a_queue(Fixture *f, const void *data) {
        g_autoptr(Client) busy = client_new("alice");
        g_autofree char *path = NULL;
        Crowd crowd;
        unsigned n;
        int lease;

        crowd_up(&crowd);
        path = crowd_hold(f->other, &lease);
        g_assert_true(hold_wait(f->other, path));
        for (unsigned i = 0; i < 4; i++)
                counters_open(busy, "foreground", false);
        hold_release(f->other, path);
        n = answers_until_counting(busy, &crowd);
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
        crowd_await(&crowd);
        close_fd(lease);
        crowd_down(&crowd);
}

static void test_yielding_hold_ends(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd);
        path = crowd_hold(f->other, &lease);
        crowd_note_midway(&crowd);
        hold_end_by_lease(f->other, path, lease);
        crowd_await(&crowd);
        crowd_down(&crowd);
}

static void test_resuming_hold_comes(Fixture *f, const void *data) {
        g_autofree char *path = NULL, *next = NULL;
        Crowd crowd;
        int lease, lease_of_next;

        crowd_up(&crowd);
        path = crowd_hold(f->other, &lease);
        g_assert_true(hold_wait(f->other, path));
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        g_assert_true(counter_is(crowd.client, crowd.last, "yielded"));
        next = crowd_hold(f->other, &lease_of_next);
        g_assert_true(hold_wait(f->other, next));
        crowd_assert_stands(&crowd);
        hold_release(f->other, next);
        crowd_await(&crowd);
        close_fd(lease);
        close_fd(lease_of_next);
        crowd_down(&crowd);
}

/* Nobody waits for what has gone. */
static void test_yielding_monitors_leave(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd);
        path = crowd_hold(f->other, &lease);
        client_free(TAKE_PTR(crowd.client));
        g_assert_true(hold_wait(f->other, path));
        hold_release(f->other, path);
        close_fd(lease);
        crowd_down(&crowd);
}

static void test_resuming_monitors_leave(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd);
        path = crowd_hold(f->other, &lease);
        g_assert_true(hold_wait(f->other, path));
        hold_release(f->other, path);
        client_free(TAKE_PTR(crowd.client));
        close_fd(lease);
        crowd_down(&crowd);
}

/* Ways to restart: both in the midst. */
static void test_yielding_restart(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd);
        path = crowd_hold(f->other, &lease);
        crowd_note_midway(&crowd);
        rig(data, NULL);
        g_assert_true(hold_wait(f->other, path));
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        g_assert_true(counter_is(crowd.client, crowd.last, "yielded"));
        rig(data, NULL);
        crowd_await(&crowd);
        close_fd(lease);
        crowd_down(&crowd);
}

/* Monitors of two CPUs, of which one goes and comes back in the midst. */
static void test_yielding_cpu_goes(Fixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease, lock;

        if (!cpu_switch(true)) {
                g_test_skip("no CPU can be switched off here");
                return;
        }
        lock = machine_lock();
        cpus = "0-1";
        crowd_up(&crowd);
        cpus = "0";
        path = crowd_hold(f->other, &lease);
        cpu_must_switch(false);
        g_assert_true(hold_wait(f->other, path));
        crowd_assert_stands(&crowd);
        cpu_must_switch(true);
        client_greet(f->other);
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        g_assert_true(counter_is(crowd.client, crowd.last, "yielded"));
        cpu_must_switch(false);
        crowd_await(&crowd);
        cpu_must_switch(true);
        crowd_await(&crowd);
        close_fd(lease);
        crowd_down(&crowd);
        close_fd(lock);
}

#define ADD_WITH(name, data, test)                                                                 \
        g_test_add("/turns/" name, Fixture, data, fixture_set_up, test, fixture_tear_down)
#define ADD(name, test) ADD_WITH(name, NULL, test)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        cpu_back_at_end();
        ADD("opening", test_opening);
        ADD("opening-beside-a-queue", test_opening_beside_a_queue);
        ADD("opening-client-leaves", test_opening_client_leaves);
        ADD("opening-and-an-exclusive-hold", test_opening_exclusive_hold);
        ADD_WITH("opening-restart", "service-restart", test_opening_restart);
        ADD_WITH("opening-kill", "service-kill --again", test_opening_restart);
        ADD("opening-cpu-goes", test_opening_cpu_goes);
        ADD("objects", test_objects);
        ADD("objects-that-change", test_objects_changing);
        ADD("objects-client-leaves", test_objects_client_leaves);
        ADD("leaving", test_leaving);
        ADD("leaving-monitors-under-a-hold", test_leaving_monitors);
        ADD("leaving-and-the-limit", test_leaving_limit);
        ADD("leaving-and-a-hold", test_leaving_and_a_hold);
        ADD("yielding-and-resuming", test_yielding);
        ADD("resuming-beside-a-queue", test_resuming_beside_a_queue);
        ADD("yielding-hold-ends", test_yielding_hold_ends);
        ADD("resuming-hold-comes", test_resuming_hold_comes);
        ADD("yielding-monitors-leave", test_yielding_monitors_leave);
        ADD("resuming-monitors-leave", test_resuming_monitors_leave);
        ADD_WITH("yielding-restart", "service-restart", test_yielding_restart);
        ADD_WITH("yielding-kill", "service-kill --again", test_yielding_restart);
        ADD("yielding-cpu-goes", test_yielding_cpu_goes);
        return g_test_run();
}
