/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Clients of several users send rubbish and die, at random. $PERFALLOC_RUBBISH is the number of
 * messages (default 2,000), --seed repeats a run, $PERFALLOC_RUBBISH_LOG is a file that gets all
 * messages. Of many the test says every now and then how many it has sent. In a shared rig they are
 * not about breakpoints.
 */

#include "rubbish.h"

#include <fcntl.h>

#define MESSAGES_DEFAULT 2000u
#define MESSAGES_A_TURN  20000u /* then all that is left must go */
#define BYTES_SANITIZED  (64u << 10)
#define AWAITED_MAX      60u /* a sender: the bus lets one connection await 128 replies */
#define LEASES_MAX       8u  /* a sender keeps */
#define MEMORY_SLACK     (2u << 20)

/* One that sends. */
typedef struct Sender {
        const char *user;
        Client *client;
        GHashTable *awaited; /* cookie -> what was called */
        GArray *leases;      /* int */
} Sender;

static const char *const users[] = { "root", "root", "alice", "alice", "bob", "bob" };

static Rubbish *rubbish;
static FILE *record; /* of what is sent, if requested */
static Sender senders[G_N_ELEMENTS(users)];

/* The outcomes of the calls. */
static GHashTable *outcomes; /* name of the error, "" for success -> number */
static unsigned n_sent, n_succeeded, n_descriptors_before, n_descriptors_after, n_left;
static pid_t pid_before, pid_after;
static uint64_t memory_before, memory_after;

/* ---- senders ---- */

static void sender_up(Sender *s, const char *user) {
        s->user = user;
        s->client = client_new(user);
        s->awaited = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
        s->leases = g_array_new(FALSE, FALSE, sizeof(int));
}

static void sender_down(Sender *s) {
        if (rubbish_chance(2)) /* with what it had not read yet */
                sd_bus_close(s->client->bus);
        client_free(s->client);
        g_hash_table_unref(s->awaited);
        for (unsigned i = 0; i < s->leases->len; i++)
                (void) close(g_array_index(s->leases, int, i));
        g_array_unref(s->leases);
}

static void lease_keep(void *userdata, int fd) {
        Sender *s = userdata;
        int copy;

        if (s->leases->len >= LEASES_MAX || rubbish_chance(2))
                return;
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(copy, >=, 0);
        g_array_append_val(s->leases, copy);
}

static void outcome_note(const char *error) {
        gpointer n = g_hash_table_lookup(outcomes, error);

        g_hash_table_insert(outcomes, g_strdup(error), GUINT_TO_POINTER(GPOINTER_TO_UINT(n) + 1));
        n_succeeded += *error == '\0';
}

/* A reply was requested, and is the first one. */
static void sender_take(Sender *s, sd_bus_message *m) {
        const sd_bus_error *error = sd_bus_message_get_error(m);
        const char *called;
        uint64_t cookie;

        if (sd_bus_message_get_reply_cookie(m, &cookie) < 0) {
                rubbish_learn(rubbish, m, lease_keep, s);
                return; /* a signal to this client */
        }
        called = g_hash_table_lookup(s->awaited, &cookie);
        /* a bus with a full queue refuses even calls without a reply */
        if (!called && g_strcmp0(sd_bus_message_get_sender(m), "org.freedesktop.DBus") == 0)
                return;
        if (!called)
                g_error("an answer that nobody waits for, or the second one: %s",
                        error ? error->message : "success");
        if (error && strcmp(error->name, SD_BUS_ERROR_NO_REPLY) == 0)
                g_error("%s was not answered: %s", called, error->message);
        outcome_note(error ? error->name : "");
        g_hash_table_remove(s->awaited, &cookie);
        if (!error)
                rubbish_learn(rubbish, m, lease_keep, s);
}

static void sender_hear(Sender *s) {
        sd_bus_message *m;

        while ((m = client_next(s->client, 0))) {
                sender_take(s, m);
                sd_bus_message_unref(m);
        }
}

/* Waits a moment for the next answer. */
static void sender_expect(Sender *s) {
        g_autoptr(sd_bus_message) m = client_next(s->client, 3000);

        if (m)
                sender_take(s, m);
}

static void sender_say(Sender *s) {
        g_autoptr(sd_bus_message) m = rubbish_message(rubbish, s->client);
        uint64_t cookie = 0;
        bool expected;
        int r;

        expected = sd_bus_message_get_expect_reply(m) > 0;
        r = sd_bus_send(s->client->bus, m, expected ? &cookie : NULL);
        if (r < 0)
                g_error("%s cannot send: %s", s->user, g_strerror(-r));
        n_sent++;
        if (record) {
                (void) fprintf(record, "by %s (%s):\n", s->user, s->client->name);
                (void) sd_bus_message_dump(m, record, SD_BUS_MESSAGE_DUMP_WITH_HEADER);
                (void) fflush(record);
        }
        if (expected)
                g_hash_table_insert(s->awaited, g_memdup2(&cookie, sizeof(cookie)),
                                    g_strdup_printf("%s of %s, by %s", sd_bus_message_get_member(m),
                                                    sd_bus_message_get_path(m), s->user));
}

static void send_one(void) {
        Sender *s = &senders[g_test_rand_int_range(0, G_N_ELEMENTS(senders))];

        sender_say(s);
        if (!rubbish_chance(4)) /* the objects of the next calls exist by then */
                sender_expect(s);
        sender_hear(s);
        if (g_hash_table_size(s->awaited) >= AWAITED_MAX || rubbish_chance(100)) {
                sender_down(s);
                sender_up(s, s->user);
        }
}

/* ---- tidying up ---- */

/* Ends an object, if it is of a kind that does not end with its connection. */
static bool object_end(Client *root, const char *path, const char *state) {
        static const struct {
                const char *kind, *interface, *method;
        } ends[] = {
                { "/hold/", PERFALLOC_HOLD_INTERFACE, "Release" },
                { "/counter/", PERFALLOC_COUNTER_INTERFACE, "Close" },
                { "/sampler/", PERFALLOC_SAMPLER_INTERFACE, "Close" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
                g_autoptr(sd_bus_message) m = NULL;

                if (!strstr(path, ends[i].kind) || g_strcmp0(state, "ended") == 0)
                        continue;
                m = client_message(root, path, ends[i].interface, ends[i].method);
                (void) sd_bus_call(root->bus, m, UINT64_MAX, NULL, NULL);
                return true;
        }
        return false;
}

/* How many objects there were to be ended. */
static unsigned objects_end(Client *root) {
        g_autoptr(sd_bus_message) objects = client_objects(root);
        const char *path = NULL;
        unsigned n = 0;

        while (objects_next(objects, &path)) {
                g_autofree char *state = object_read(objects, HOLD, "State");

                n += object_end(root, path, state);
        }
        return n;
}

/* Whether all clients have got all answers. Objects are ended meanwhile, because there are calls of
 * Wait. */
static bool all_answered(Client *root) {
        unsigned n = objects_end(root);

        for (size_t i = 0; i < G_N_ELEMENTS(senders); i++) {
                sender_hear(&senders[i]);
                n += g_hash_table_size(senders[i].awaited);
        }
        return n == 0;
}

static void assert_all_answered(Client *root) {
        gint64 end = g_get_monotonic_time() + AWAIT_SEC * G_USEC_PER_SEC;

        while (!all_answered(root)) {
                if (g_get_monotonic_time() < end)
                        continue;
                for (size_t i = 0; i < G_N_ELEMENTS(senders); i++) {
                        GHashTableIter iter;
                        gpointer called;

                        g_hash_table_iter_init(&iter, senders[i].awaited);
                        while (g_hash_table_iter_next(&iter, NULL, &called))
                                g_test_message("not answered: %s", (char *) called);
                }
                g_error("calls were not answered, or objects do not go");
        }
}

static void send_many(unsigned n) {
        g_autoptr(Client) root = client_new("root");

        for (size_t i = 0; i < G_N_ELEMENTS(senders); i++)
                sender_up(&senders[i], users[i]);
        while (n-- > 0)
                send_one();
        rubbish_forget_descriptors(rubbish);
        assert_all_answered(root);
        for (size_t i = 0; i < G_N_ELEMENTS(senders); i++)
                sender_down(&senders[i]);
        await(objects_end(root) == 0);
        rubbish_forget_descriptors(rubbish);
        n_left = client_count(root, "monitor") + client_count(root, "sampler") +
                 client_count(root, "counter");
}

static void send_in_turns(unsigned n) {
        while (n > 0) {
                unsigned some = MIN(n, MESSAGES_A_TURN);

                send_many(some);
                n -= some;
                if (n > 0)
                        g_test_message("%u messages", n_sent);
        }
}

static int bystander_play(int fd, const void *data) {
        return act_hear(fd);
}

static void outcomes_tell(void) {
        GHashTableIter iter;
        gpointer name, n;

        g_hash_table_iter_init(&iter, outcomes);
        while (g_hash_table_iter_next(&iter, &name, &n))
                g_test_message("%5u %s", GPOINTER_TO_UINT(n),
                               *(char *) name ? (char *) name : "success");
}

/* Once for all tests. What the service creates once for ever, it creates in the first part. */
static void rubbish_send(void) {
        const char *wanted = g_getenv("PERFALLOC_RUBBISH");
        unsigned n = wanted ? (unsigned) strtoul(wanted, NULL, 10) : MESSAGES_DEFAULT;
        g_autoptr(Actor) alice = NULL, bob = NULL;

        if (rubbish)
                return;
        if (g_getenv("PERFALLOC_RUBBISH_LOG"))
                record = fopen(g_getenv("PERFALLOC_RUBBISH_LOG"), "we");
        rig_configure("[Limits]\nIdleExitSec=1h\n"); /* this may wait for the machine's lock */
        rig("service-stop && service-start " SERVICE_MEMORY_STEADY, NULL);
        rubbish = rubbish_new();
        if (rig_is_shared())
                rubbish_soften(rubbish);
        if (service_memory() == 0) /* AddressSanitizer takes seconds to receive a long one */
                rubbish_shorten(rubbish, BYTES_SANITIZED);
        outcomes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        alice = actor_new("alice", bystander_play, NULL);
        bob = actor_new("bob", bystander_play, NULL);
        rubbish_learn_process(rubbish, alice->pid);
        rubbish_learn_process(rubbish, bob->pid);
        pid_before = service_pid();
        send_in_turns(n / 4);
        n_descriptors_before = service_descriptors();
        memory_before = service_memory();
        send_in_turns(n - n / 4);
        pid_after = service_pid();
        n_descriptors_after = service_descriptors();
        for (int i = 0; i < 2000 && n_descriptors_after != n_descriptors_before; i++) {
                g_usleep(1000);
                n_descriptors_after = service_descriptors();
        }
        memory_after = service_memory();
        g_test_message("private memory: %" PRIu64 " B before, %" PRIu64 " B after", memory_before,
                       memory_after);
        outcomes_tell();
}

/* ---- promises ---- */

static void test_answers(void) {
        rubbish_send(); /* ends the program where one is missing or too many */
        g_assert_cmpuint(n_sent, >, 0);
        /* not all calls were refused early */
        g_assert_cmpuint(n_succeeded, >, n_sent / 10);
}

static void test_process(void) {
        rubbish_send();
        g_assert_cmpint(pid_after, ==, pid_before);
}

static void test_descriptors(void) {
        rubbish_send();
        g_assert_cmpuint(n_descriptors_after, ==, n_descriptors_before);
}

/* Except for what malloc() keeps in fragments, which is less than four bytes per message. */
static void test_memory(void) {
        rubbish_send();
        g_assert_cmpuint(memory_after, <=, memory_before + MEMORY_SLACK + 4 * n_sent);
}

static void test_objects(void) {
        rubbish_send();
        g_assert_cmpuint(n_left, ==, 0);
}

/* With all breakpoints free. */
static void test_hold(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL;
        _cleanup_close_ int machine = -1;
        int lease;

        rubbish_send();
        machine = machine_lock();
        hold = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "counters", "u", 4);
        g_assert_true(hold_wait(alice, hold));
        (void) close(lease);
}

/* All at once: a hold that waits for a monitor, counters, a sampler. The rig checks how the service
 * ends. */
static void test_stop(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) monitor = NULL, sampler = NULL;
        g_autofree char *hold = NULL, *counter = NULL;
        _cleanup_close_ int machine G_GNUC_UNUSED = machine_lock();
        int lease;

        monitor =
                client_call(alice, MANAGER, "RegisterMonitor", "sa{sv}", "a test", 1, BREAKPOINTS);
        counter = monitor_open(alice, 0, 1);
        sampler = client_call(alice, MANAGER, "CreateSampler", "aota{sv}", 1, counter,
                              UINT64_C(1000000), 0);
        hold = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "yield_usec", "t",
                         UINT64_C(60000000));
        await(hold_is(alice, hold, "yielding"));
        rig("service-stop && service-start", NULL);
        (void) close(lease);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rubbish/every-call-is-answered-once", test_answers);
        g_test_add_func("/rubbish/the-service-lives-on", test_process);
        g_test_add_func("/rubbish/no-descriptor-is-left", test_descriptors);
        g_test_add_func("/rubbish/no-object-is-left", test_objects);
        g_test_add_func("/rubbish/no-memory-is-left", test_memory);
        g_test_add_func("/rubbish/the-next-hold-is-granted", test_hold);
        g_test_add_func("/rubbish/stopping-in-the-midst-ends-well", test_stop);
        return g_test_run();
}
