/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Long calls are made in slices: other clients are answered meanwhile. Answers are counted, not
 * their time. */

#include "attach-util.h"
#include "cpu-switch.h"
#include "restart-util.h"
#include "turns-util.h"

#include <signal.h>

enum {
        LEFT = 12, /* times MANY, of a client that leaves */
        GROUP_EVENTS = 17,
        GROUP_THREADS = 900,
        TRIES = 20,
};

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
static void test_opening(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root");
        unsigned n;

        many_open(c, "0", "foreground", true);
        many_open(c, "0", "foreground", true);
        client_greet(f->other);
        n = answers_until(f->other, c,
                          client_send_message(c, many_message(c, "0", "foreground", true)));
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
}

/* A user who has just had much of the service's time is queued, and comes to their turn too. */
static void test_opening_beside_a_queue(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), busy = client_new("alice");
        uint64_t cookie;
        unsigned n;

        for (unsigned i = 0; i < 2; i++)
                many_open(c, "0", "foreground", true);
        for (unsigned i = 0; i < 4; i++)
                many_open(busy, "0", "foreground", false);
        cookie = client_send_message(c, many_message(c, "0", "foreground", true));
        n = answers_until(busy, c, cookie);
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
}

static void test_opening_client_leaves(TurnsFixture *f, const void *data) {
        Client *c = client_new("root");
        uint64_t cookie;

        many_open(c, "0", "foreground", true);
        cookie = client_send_message(c, many_message(c, "0", "foreground", true));
        client_greet(f->other);
        g_assert_false(client_has_answer(c, cookie));
        client_free(c);
}

static void test_opening_exclusive_hold(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), holder = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        g_autofree char *path = NULL;
        uint64_t cookie;
        int lease;

        many_open(c, "0", "foreground", true);
        many_open(c, "0", "foreground", true);
        cookie = client_send_message(c, many_message(c, "0", "foreground", true));
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
static void test_opening_restart(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root");
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie, n;

        many_open(c, "0", "foreground", true);
        many_open(c, "0", "foreground", true);
        cookie = client_send_message(c, many_message(c, "0", "foreground", true));
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
static void test_opening_cpu_goes(TurnsFixture *f, const void *data) {
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
        cookie = client_send_message(c, many_message(c, "0-1", "foreground", true));
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

static void test_objects(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), another = client_new("bob");
        uint64_t cookie;
        unsigned n;

        for (unsigned i = 0; i < 4; i++)
                many_open(c, "0", "foreground", false);
        g_assert_cmpuint(client_count(f->other, "counter"), ==, 4 * MANY);
        client_greet(another);
        cookie = objects_ask(another);
        n = answers_until(f->other, c, objects_ask(c));
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
        sd_bus_message_unref(client_receive(another, cookie));
}

/* polkit is asked before the call is queued, once: later its answer would delay all those behind.
 * Here it says no to the first question and yes to any other. The calls before it take longer than
 * polkit does. */
static void test_objects_ask_once(TurnsFixture *f, const void *data) {
        enum { QUEUED = 4 };
        g_autoptr(Client) c = client_new("root"), bob = client_new("bob");
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t queued[QUEUED];
        const char *path = NULL;
        unsigned n = 0;

        for (unsigned i = 0; i < 4; i++)
                many_open(c, "0", "foreground", false);
        client_greet(bob);
        rig("rules 00-a-test",
            "var asked = 0; polkit.addRule(function(action, subject) { if (subject.user == \"bob\" "
            "&& "
            "action.id == \"org.perfalloc1.manage\") return asked++ ? polkit.Result.YES : "
            "polkit.Result.NO; });");
        for (unsigned i = 0; i < QUEUED; i++)
                queued[i] = objects_ask(c);
        reply = client_receive(bob, objects_ask(bob));
        for (unsigned i = 0; i < QUEUED; i++)
                sd_bus_message_unref(client_receive(c, queued[i]));
        while (objects_next(reply, &path)) {
                g_autofree char *event = object_read(reply, COUNTER, "Event");

                n += event != NULL;
                g_assert_cmpstr(event ?: "", ==, "");
        }
        g_assert_cmpuint(n, ==, 4 * MANY);
        rig("rules --remove 00-a-test", NULL);
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
static void test_objects_changing(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), watcher = client_new("root");
        g_autofree char *first = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        g_autofree char *second = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        g_autofree char *last = NULL, *added = NULL;
        g_autoptr(GHashTable) v = NULL;
        uint64_t cookie;

        for (unsigned i = 0; i < 4; i++)
                many_open(c, "0", "foreground", false);
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
static void test_objects_client_leaves(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), watcher = client_new("root");
        g_autofree char *path = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");
        Client *asking = client_new("root");
        g_autoptr(GHashTable) v = NULL;

        for (unsigned i = 0; i < 4; i++)
                many_open(c, "0", "foreground", false);
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

/* The service stands still until it has both to read: that the client has left, and what is sent
 * before service_go_on(). */
static void leave(TurnsFixture *f, Client *c) {
        g_autofree char *name = g_strdup(c->name);

        g_assert_cmpint(kill(service_pid(), SIGSTOP), ==, 0);
        client_free(c);
        await(!bus_knows(f->other, name));
}

/* Others are answered before all is closed: the oldest counter is still there. */
static void leave_slowly(TurnsFixture *f, Client *c, const char *oldest) {
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie;

        leave(f, c);
        cookie = client_send(f->other, oldest, "org.freedesktop.DBus.Properties", "Get", "ss",
                             COUNTER, "State");
        service_go_on(f->other);
        reply = client_receive(f->other, cookie);
        g_assert_false(sd_bus_message_is_method_error(reply, NULL));
        await(!client_finds(f->other, oldest, COUNTER));
}

static void test_leaving(TurnsFixture *f, const void *data) {
        Client *c = client_new("root");
        g_autofree char *oldest = counter_open(c, "dummy", "a{sv}", 1, "scope", "s", "cpu");

        for (unsigned i = 0; i < LEFT; i++)
                many_open(c, "0", "foreground", false);
        leave_slowly(f, c, oldest);
}

static void test_leaving_monitors(TurnsFixture *f, const void *data) {
        Client *c = client_new("root");
        g_autofree char *oldest =
                counter_open(c, "dummy", "a{sv}", 2, "scope", "s", "cpu", "role", "s", "monitor");
        g_autofree char *path = NULL;
        int lease;

        for (unsigned i = 0; i < LEFT; i++)
                many_open(c, "0", "monitor", false);
        path = hold_take(f->other, &lease, "a{sv}", 1, "pmus", "as", 1, "software");
        g_assert_true(hold_wait(f->other, path));
        leave_slowly(f, c, oldest);
        close_fd(lease);
}

/* OpenCounters of one group, with an event of each thread for each of its members. */
static sd_bus_message *group_message(Client *c, pid_t pid) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (unsigned i = 0; i < GROUP_EVENTS; i++)
                g_assert_cmpint(sd_bus_message_append(m, "s", "dummy"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 3, "group", "b", 1, "pid", "u",
                                              (uint32_t) pid, "start", "b", 1),
                        >=, 0);
        return g_steal_pointer(&m);
}

static void group_open(Client *c, pid_t pid) {
        g_autoptr(sd_bus_message) m = group_message(c, pid);

        sd_bus_message_unref(client_call_message(c, m));
}

/* A group's read begins with a number and the two times (perf_event_open(2)). */
static void event_add_enabled(int fd, void *userdata) {
        uint64_t *sum = userdata, read_format[3 + GROUP_EVENTS];

        if (read(fd, read_format, sizeof(read_format)) > 0)
                *sum += read_format[1];
}

static uint64_t events_enabled(void) {
        uint64_t sum = 0;

        service_events_each(event_add_enabled, &sum);
        return sum;
}

static bool events_count(void) {
        uint64_t before = events_enabled();

        return events_enabled() > before;
}

/* Whether its events are not all closed when the next call is answered; they count no more. */
static bool is_open_at_an_answer(TurnsFixture *f, pid_t pid) {
        Client *c = client_new("root");
        uint64_t cookie;
        unsigned n;

        group_open(c, pid);
        g_assert_cmpuint(service_events(), >=, GROUP_THREADS * GROUP_EVENTS);
        await(events_count());
        leave(f, c);
        cookie = client_send(f->other, MANAGER, "HasSamplers", NULL);
        service_go_on(f->other);
        sd_bus_message_unref(client_receive(f->other, cookie));
        g_assert_cmpint(kill(service_pid(), SIGSTOP), ==, 0);
        n = service_events();
        g_assert_false(events_count());
        g_assert_cmpint(kill(service_pid(), SIGCONT), ==, 0);
        await(service_events() == 0);
        return n > 0;
}

/* This process may lose its CPU between the answer and its look. */
static void test_leaving_group(TurnsFixture *f, const void *data) {
        const int n_threads = GROUP_THREADS - 1;
        g_autoptr(Actor) target = actor_new("alice", play_threads, &n_threads);
        bool seen = false;

        g_assert_cmpint(actor_hear(target), ==, 'r');
        actor_tell(target, 's');
        for (unsigned i = 0; i < TRIES && !seen; i++)
                seen = is_open_at_an_answer(f, target->pid);
        g_assert_true(seen);
}

/* What a user's earlier client has left is not held against the next one. */
static void test_leaving_limit(TurnsFixture *f, const void *data) {
        g_autoptr(Client) next = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        Client *c = client_new("alice");
        uint64_t cookie;

        many_open(next, "0", "foreground", false); /* polkit has said yes */
        for (unsigned i = 0; i < 3; i++)
                many_open(c, "0", "foreground", false);
        leave(f, c);
        cookie = client_send_message(next, many_message(next, "0", "foreground", false));
        service_go_on(next);
        reply = client_receive(next, cookie);
        g_assert_false(sd_bus_message_is_method_error(reply, NULL));
}

/* Nor is it in the way of a hold. */
static void test_leaving_and_a_hold(TurnsFixture *f, const void *data) {
        g_autoptr(sd_bus_message) reply = NULL;
        Client *c = client_new("alice");
        uint64_t cookie;
        const char *path;
        int lease;

        for (unsigned i = 0; i < 4; i++)
                many_open(c, "0", "foreground", false);
        leave(f, c);
        cookie = client_send(f->other, MANAGER, "Hold", "sa{sv}", "test", 2, "pmus", "as", 1,
                             "software", "mode", "s", "exclusive");
        service_go_on(f->other);
        reply = client_receive(f->other, cookie);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
        g_assert_true(hold_wait(f->other, path));
        hold_release(f->other, path);
}

/* ---- stopping ---- */

static bool is_gone(pid_t pid) {
        return kill(pid, 0) < 0;
}

static unsigned signals_received(Client *c, const char *member) {
        unsigned n = 0;

        g_assert_true(bus_knows(c, c->name)); /* all that was sent before has come */
        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(c, 0);

                if (!m)
                        return n;
                n += sd_bus_message_is_signal(m, NULL, member) > 0;
        }
}

/* The client has its reply, and the counters are announced in slices. */
static void test_stop_announces(TurnsFixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), watcher = client_new("root");
        pid_t service = service_pid();

        client_watch(watcher);
        many_open(c, "0", "foreground", false);
        g_assert_cmpint(kill(service, SIGTERM), ==, 0);
        await(is_gone(service));
        g_assert_cmpuint(signals_received(watcher, "InterfacesAdded"), ==, MANY);
        rig("service-start", NULL);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        cpu_back_at_end();
        TURNS_ADD("opening", test_opening);
        TURNS_ADD("opening-beside-a-queue", test_opening_beside_a_queue);
        TURNS_ADD("opening-client-leaves", test_opening_client_leaves);
        TURNS_ADD("opening-and-an-exclusive-hold", test_opening_exclusive_hold);
        TURNS_ADD_WITH("opening-restart", RESTARTED, test_opening_restart);
        TURNS_ADD_WITH("opening-kill", KILLED, test_opening_restart);
        TURNS_ADD("opening-cpu-goes", test_opening_cpu_goes);
        TURNS_ADD("objects", test_objects);
        TURNS_ADD("objects-ask-polkit-once", test_objects_ask_once);
        TURNS_ADD("objects-that-change", test_objects_changing);
        TURNS_ADD("objects-client-leaves", test_objects_client_leaves);
        TURNS_ADD("leaving", test_leaving);
        TURNS_ADD("leaving-monitors-under-a-hold", test_leaving_monitors);
        TURNS_ADD("leaving-a-large-group", test_leaving_group);
        TURNS_ADD("leaving-and-the-limit", test_leaving_limit);
        TURNS_ADD("leaving-and-a-hold", test_leaving_and_a_hold);
        TURNS_ADD("stop-announces-what-was-opened", test_stop_announces);
        return g_test_run();
}
