/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The order of a hold's signals, which org.perfalloc1(5) promises. */

#include "bus-util.h"

typedef struct Story Story;
typedef struct Told Told;

/* A message about a hold's path, in a word or two. */
struct Told {
        char *path; /* NULL: an answer */
        char *what;
};

struct Story {
        const char *caller;  /* whose answers belong to it */
        bool monitor;        /* sees all messages of the bus */
        GHashTable *pending; /* cookie of the caller's call -> method */
        GPtrArray *told;     /* of Told */
};

static void told_free(void *p) {
        Told *t = p;

        g_free(t->path);
        g_free(t->what);
        g_free(t);
}

static Story *story_new(const char *caller, bool monitor) {
        Story *s = g_new0(Story, 1);

        s->caller = caller;
        s->monitor = monitor;
        s->pending = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
        s->told = g_ptr_array_new_with_free_func(told_free);
        return s;
}

static void story_free(Story *s) {
        g_hash_table_unref(s->pending);
        g_ptr_array_unref(s->told);
        g_free(s);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Story, story_free)

static void story_add(Story *s, const char *path, char *what) {
        Told *t = g_new0(Told, 1);

        t->path = g_strdup(path);
        t->what = what;
        g_ptr_array_add(s->told, t);
}

static void story_called(Story *s, uint64_t cookie, const char *member) {
        if (strcmp(member, "Ping") == 0)
                return;
        (void) g_hash_table_insert(s->pending, g_memdup2(&cookie, sizeof(cookie)),
                                   g_strdup(member));
}

static void story_hear_answer(Story *s, sd_bus_message *m) {
        const sd_bus_error *error = sd_bus_message_get_error(m);
        const char *member;
        uint64_t cookie;

        if (g_strcmp0(sd_bus_message_get_destination(m), s->caller) != 0 ||
            sd_bus_message_get_reply_cookie(m, &cookie) < 0)
                return;
        member = g_hash_table_lookup(s->pending, &cookie);
        if (!member)
                return;
        if (error)
                story_add(s, NULL,
                          g_strdup_printf("%s: %s", member, strrchr(error->name, '.') + 1));
        else
                story_add(s, NULL, g_strdup_printf("%s returns", member));
}

/* "State granted", "State ended, Result released": strings alone. */
static void story_hear_change(Story *s, sd_bus_message *m) {
        g_autoptr(GString) what = g_string_new(NULL);
        const char *interface, *name, *value, *type;

        g_assert_cmpint(sd_bus_message_read(m, "s", &interface), >, 0);
        if (strcmp(interface, HOLD) != 0)
                return;
        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "{sv}"), >, 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                g_assert_cmpint(sd_bus_message_read(m, "s", &name), >, 0);
                g_assert_cmpint(sd_bus_message_peek_type(m, NULL, &type), >, 0);
                if (strcmp(type, "s") == 0) {
                        g_assert_cmpint(sd_bus_message_read(m, "v", "s", &value), >, 0);
                        g_string_append_printf(what, "%s%s %s", what->len > 0 ? ", " : "", name,
                                               value);
                } else
                        g_assert_cmpint(sd_bus_message_skip(m, "v"), >=, 0);
                g_assert_cmpint(sd_bus_message_exit_container(m), >=, 0);
        }
        story_add(s, sd_bus_message_get_path(m), g_strdup(what->str));
}

static void story_hear_signal(Story *s, sd_bus_message *m) {
        static const char *const signals[] = { "InterfacesAdded", "InterfacesRemoved",
                                               "HoldGranted", "HoldEnded" };
        const char *member = sd_bus_message_get_member(m), *path;

        if (strcmp(member, "PropertiesChanged") == 0)
                story_hear_change(s, m);
        for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
                if (strcmp(member, signals[i]) == 0) {
                        g_assert_cmpint(sd_bus_message_read(m, "o", &path), >, 0);
                        story_add(s, path, g_strdup(member));
                }
}

static void story_hear(Story *s, sd_bus_message *m) {
        uint64_t cookie;
        uint8_t type;

        g_assert_cmpint(sd_bus_message_get_type(m, &type), >=, 0);
        if (type == SD_BUS_MESSAGE_SIGNAL)
                story_hear_signal(s, m);
        else if (type != SD_BUS_MESSAGE_METHOD_CALL)
                story_hear_answer(s, m);
        else if (s->monitor && g_strcmp0(sd_bus_message_get_sender(m), s->caller) == 0 &&
                 sd_bus_message_get_cookie(m, &cookie) >= 0)
                story_called(s, cookie, sd_bus_message_get_member(m));
}

/* The messages about the hold, and the caller's answers, one per line. */
static char *story_of(const Story *s, const char *path) {
        GString *text = g_string_new(NULL);

        for (guint i = 0; i < s->told->len; i++) {
                const Told *t = s->told->pdata[i];

                if (!t->path || strcmp(t->path, path) == 0)
                        g_string_append_printf(text, "%s\n", t->what);
        }
        return g_string_free(text, FALSE);
}

/* Reads until this message about the hold has come. */
static void story_listen(Story *s, Client *c, const char *path, const char *last) {
        for (;;) {
                g_autofree char *text = story_of(s, path);
                g_autoptr(sd_bus_message) m = NULL;

                if (g_str_has_suffix(text, last))
                        return;
                m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC);
                if (!m)
                        g_error("'%s' was never told, only:\n%s", last, text);
                story_hear(s, m);
        }
}

/* A connection that gets a copy of every message of the bus, in the order of the bus. */
static Client *eavesdropper_new(void) {
        Client *c = g_new0(Client, 1);

        c->inbox = g_queue_new();
        c->proofs = g_array_new(FALSE, FALSE, sizeof(int));
        g_assert_cmpint(sd_bus_new(&c->bus), >=, 0);
        g_assert_cmpint(sd_bus_set_address(c->bus, g_getenv("DBUS_SYSTEM_BUS_ADDRESS")), >=, 0);
        g_assert_cmpint(sd_bus_set_monitor(c->bus, true), >=, 0);
        g_assert_cmpint(sd_bus_set_bus_client(c->bus, true), >=, 0);
        g_assert_cmpint(sd_bus_start(c->bus), >=, 0);
        g_assert_cmpint(sd_bus_call_method(c->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                           "org.freedesktop.DBus.Monitoring", "BecomeMonitor", NULL,
                                           NULL, "asu", 0, 0),
                        >=, 0);
        return c;
}

typedef struct Stage {
        Client *root, *alice, *ear;
        Story *heard; /* by alice */
        Story *sent;  /* on the bus */
        char *blocker;
        int blocking;
} Stage;

static void stage_up(Stage *s, const void *data) {
        s->root = client_new("root");
        s->alice = client_new("alice");
        s->blocker =
                hold_take(s->root, &s->blocking, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        g_assert_true(hold_wait(s->root, s->blocker));
        client_watch(s->alice);
        s->ear = eavesdropper_new();
        s->heard = story_new(s->alice->name, false);
        s->sent = story_new(s->alice->name, true);
}

static void stage_down(Stage *s, const void *data) {
        close_fd(s->blocking);
        story_free(s->heard);
        story_free(s->sent);
        g_free(s->blocker);
        client_free(s->ear);
        client_free(s->alice);
        client_free(s->root);
}

static uint64_t stage_call(Stage *s, const char *path, const char *interface, const char *member,
                           const char *types, uint64_t wait_usec) {
        uint64_t cookie;

        if (types)
                cookie = client_send(s->alice, path, interface, member, types, "in order", 2,
                                     BREAKPOINTS, "wait_usec", "t", wait_usec);
        else
                cookie = client_send(s->alice, path, interface, member, NULL);
        story_called(s->heard, cookie, member);
        return cookie;
}

static char *hold_read(sd_bus_message *m, int *ret_lease) {
        const char *path;
        int lease;

        g_assert_false(sd_bus_message_is_method_error(m, NULL));
        g_assert_cmpint(sd_bus_message_read(m, "oh", &path, &lease), >, 0);
        *ret_lease = dup(lease);
        g_assert_cmpint(*ret_lease, >=, 0);
        return g_strdup(path);
}

/* alice asks for a hold that has to wait for root's, and reads the answer. */
static char *stage_hold(Stage *s, uint64_t wait_usec, int *ret_lease) {
        uint64_t cookie = stage_call(s, MANAGER, "Hold", "sa{sv}", wait_usec), is;
        char *path = NULL;

        while (!path) {
                g_autoptr(sd_bus_message) m = client_next(s->alice, AWAIT_SEC * G_USEC_PER_SEC);

                g_assert_nonnull(m);
                story_hear(s->heard, m);
                if (sd_bus_message_get_reply_cookie(m, &is) >= 0 && is == cookie)
                        path = hold_read(m, ret_lease);
        }
        /* the eavesdropper gets a copy of the lease, and has it until the message is read */
        story_listen(s->sent, s->ear, path, "Hold returns\n");
        return path;
}

/* Up to the last message about the hold, and none about the hold after it. */
static void stage_assert(Stage *s, const char *path, const char *last, const char *story) {
        g_autofree char *heard = NULL, *sent = NULL,
                        *whole = g_strconcat(story, "GetAll returns\n", NULL);
        uint64_t cookie;

        story_listen(s->heard, s->alice, path, last);
        cookie =
                client_send(s->alice, path, "org.freedesktop.DBus.Properties", "GetAll", "s", HOLD);
        story_called(s->heard, cookie, "GetAll");
        story_listen(s->heard, s->alice, path, "GetAll returns\n");
        story_listen(s->sent, s->ear, path, "GetAll returns\n");
        heard = story_of(s->heard, path);
        sent = story_of(s->sent, path);
        g_assert_cmpstr(heard, ==, whole);
        g_assert_cmpstr(sent, ==, whole);
}

/* Both calls of Wait have arrived when a later call is answered. */
static void stage_wait_twice(Stage *s, const char *path) {
        (void) stage_call(s, path, HOLD, "Wait", NULL, 0);
        (void) stage_call(s, path, HOLD, "Wait", NULL, 0);
        sd_bus_message_unref(client_call(s->alice, PERFALLOC_OBJECT_PATH,
                                         "org.freedesktop.DBus.Peer", "Ping", NULL));
}

/* ---- the promises ---- */

static void test_grant(Stage *s, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = stage_hold(s, 10 * USEC_PER_SEC, &lease);
        stage_wait_twice(s, path);
        hold_release(s->root, s->blocker);
        stage_assert(s, path, "Wait returns\nWait returns\n",
                     "InterfacesAdded\n"
                     "Hold returns\n"
                     "State yielding\n"
                     "State granted\n"
                     "HoldGranted\n"
                     "Wait returns\n"
                     "Wait returns\n");
}

static void test_end(Stage *s, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = stage_hold(s, 10 * USEC_PER_SEC, &lease);
        hold_release(s->root, s->blocker);
        story_listen(s->heard, s->alice, path, "HoldGranted\n");
        lease = close_fd(lease);
        stage_assert(s, path, "HoldEnded\n",
                     "InterfacesAdded\n"
                     "Hold returns\n"
                     "State yielding\n"
                     "State granted\n"
                     "HoldGranted\n"
                     "State ended, Result lease-closed\n"
                     "HoldEnded\n");
}

static void test_end_with_waiters(Stage *s, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = stage_hold(s, 10 * USEC_PER_SEC, &lease);
        stage_wait_twice(s, path);
        lease = close_fd(lease);
        stage_assert(s, path, "HoldEnded\n",
                     "InterfacesAdded\n"
                     "Hold returns\n"
                     "State ended, Result lease-closed\n"
                     "Wait: Ended\n"
                     "Wait: Ended\n"
                     "HoldEnded\n");
}

static void test_time_out(Stage *s, const void *data) {
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = stage_hold(s, 200 * USEC_PER_MSEC, &lease);
        stage_wait_twice(s, path);
        stage_assert(s, path, "HoldEnded\n",
                     "InterfacesAdded\n"
                     "Hold returns\n"
                     "State ended, Result timed-out\n"
                     "Wait: TimedOut\n"
                     "Wait: TimedOut\n"
                     "HoldEnded\n");
}

#define ADD(name, test) g_test_add("/order/" name, Stage, NULL, stage_up, test, stage_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("a-grant-is-told-in-the-promised-order", test_grant);
        ADD("an-end-is-told-in-the-promised-order", test_end);
        ADD("an-end-before-the-grant-answers-who-waits-before-holdended", test_end_with_waiters);
        ADD("running-out-of-time-in-the-queue-is-told-in-the-promised-order", test_time_out);
        return g_test_run();
}
