/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What one user may have: users at a limit are told which one it is, others notice nothing, and
 * what a user releases can be had again.
 */

#include "bus-util.h"
#include "rounds.h"

#include <fcntl.h>
#include <unistd.h>

#define LIMITED SD_BUS_ERROR_LIMITS_EXCEEDED

enum { FLOOD = 100000 };
enum { HOLDS = 4, COUNTERS = 6, DESCRIPTORS = 9, SAMPLERS = 3, MONITORS = 3, CALLS = 5 };

/* Readable by those who run the program, too. */
static const char configuration[] = "[Limits]\n"
                                    "HoldsPerUser=4\n"
                                    "CountersPerUser=6\n"
                                    "DescriptorsPerUser=9\n"
                                    "SamplersPerUser=3\n"
                                    "MonitorsPerUser=3\n"
                                    "PendingCallsPerUser=5\n"
                                    "QueuedCallsPerUser=8\n"
                                    "QueuedBytesPerUser=200000\n"
                                    "SignalBytesPerUser=2000\n";

typedef struct Fixture {
        Client *alice, *carol;
        GArray *kept; /* descriptors: leases and streams */
        unsigned descriptors;
} Fixture;

static void kept_close(Fixture *f) {
        for (unsigned i = 0; i < f->kept->len; i++)
                (void) close(g_array_index(f->kept, int, i));
        g_array_set_size(f->kept, 0);
}

static void fill(Fixture *f);

static bool has_nothing(Client *c) {
        return client_count(c, "monitor") + client_count(c, "sampler") +
                       client_count(c, "counter") ==
               0;
}

/* alice disconnects, with all leases and streams. */
static void empty(Fixture *f) {
        sd_bus_close(f->alice->bus);
        client_free(f->alice);
        kept_close(f);
        await(has_nothing(f->carol));
        f->alice = client_new("alice");
}

static void fixture_set_up(Fixture *f, const void *data) {
        static bool configured;

        if (!configured)
                rig_configure(configuration);
        f->alice = client_new("alice");
        f->carol = client_new("carol");
        f->kept = g_array_new(false, false, sizeof(int));
        if (!configured) { /* what the service keeps once it has needed it */
                fill(f);
                empty(f);
        }
        configured = true;
        f->descriptors = service_descriptors();
}

static void fixture_tear_down(Fixture *f, const void *data) {
        kept_close(f);
        client_free(f->alice);
        client_free(f->carol);
        g_array_unref(f->kept);
        await(service_descriptors() <= f->descriptors);
}

static void keep(Fixture *f, int fd) {
        g_array_append_val(f->kept, fd);
}

static void assert_names(const Client *c, const char *setting) {
        g_autofree char *words = g_strdup_printf("%s= in perfallocd.conf", setting);

        if (!c->refusal || !strstr(c->refusal, words))
                g_error("does not name %s: %s", words, c->refusal);
}

/* ---- what one has ---- */

static char *take_hold(Fixture *f, Client *c, const char *mode) {
        int lease;
        char *path = hold_take(c, &lease, "a{sv}", 3, BREAKPOINTS, "mode", "s", mode, "wait_usec",
                               "t", 60 * USEC_PER_SEC);

        keep(f, lease);
        return path;
}

static void test_holds(Fixture *f, const void *data) {
        g_autofree char *hers = NULL;

        for (unsigned i = 0; i < HOLDS; i++)
                g_free(take_hold(f, f->alice, "shared"));
        client_refused(f->alice, LIMITED, MANAGER, "Hold", "sa{sv}", "too many", 1, BREAKPOINTS);
        assert_names(f->alice, "HoldsPerUser");
        client_refused(f->alice, LIMITED, MANAGER, "HoldUnattended", "sta{sv}", "too many",
                       UINT64_C(0), 1, BREAKPOINTS);
        hers = take_hold(f, f->carol, "shared");
        g_assert_true(hold_wait(f->carol, hers));
        kept_close(f);
        await(client_count(f->alice, "hold") == 0 || hold_is(f->carol, hers, "ended"));
        g_free(take_hold(f, f->alice, "shared"));
}

/* Queued holds count too. */
static void test_queued_holds(Fixture *f, const void *data) {
        for (unsigned i = 0; i < HOLDS; i++)
                g_free(take_hold(f, f->alice, "exclusive"));
        client_refused(f->alice, LIMITED, MANAGER, "Hold", "sa{sv}", "too many", 1, BREAKPOINTS);
        assert_names(f->alice, "HoldsPerUser");
}

static char *open_counter(Client *c) {
        return counter_open(c, "page-faults:u", "a{sv}", 1, "attach", "b", 0);
}

static void test_counters(Fixture *f, const void *data) {
        g_autofree char *first = open_counter(f->alice);

        for (unsigned i = 1; i < COUNTERS; i++)
                g_free(open_counter(f->alice));
        client_refused(f->alice, LIMITED, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 1,
                       "attach", "b", 0);
        assert_names(f->alice, "CountersPerUser");
        g_free(open_counter(f->carol));
        counter_do(f->alice, first, "Close");
        g_free(open_counter(f->alice));
}

/* Reading another user's counter makes one a user of it. */
static void test_readers(Fixture *f, const void *data) {
        g_autofree char *theirs = open_counter(f->carol), *id = NULL;
        g_autoptr(sd_bus_message) reply = client_call(f->carol, theirs, COUNTER, "Persist", NULL);
        const char *text;

        g_assert_cmpint(sd_bus_message_read(reply, "s", &text), >, 0);
        id = g_strdup(text);
        for (unsigned i = 0; i < COUNTERS; i++)
                g_free(open_counter(f->alice));
        client_refused(f->alice, LIMITED, MANAGER, "OpenPersistent", "s", id);
        assert_names(f->alice, "CountersPerUser");
        counter_do(f->carol, theirs, "Close");
}

static void test_descriptors(Fixture *f, const void *data) {
        unsigned n = DESCRIPTORS / n_cpus();

        for (unsigned i = 0; i < n; i++)
                g_free(counter_open(f->alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu"));
        if (n >= COUNTERS || n_cpus() > DESCRIPTORS)
                return g_test_skip("too few CPUs, or too many");
        client_refused(f->alice, LIMITED, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                       "scope", "s", "cpu");
        assert_names(f->alice, "DescriptorsPerUser");
        g_free(counter_open(f->carol, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu"));
        client_free(f->alice);
        f->alice = client_new("alice");
        await(client_count(f->alice, "counter") == 1);
        g_free(counter_open(f->alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu"));
}

/* A lease or a stream comes with it. */
static void make(Fixture *f, sd_bus_message *reply) {
        const char *path;
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &fd), >, 0);
        keep(f, fcntl(fd, F_DUPFD_CLOEXEC, 3));
        sd_bus_message_unref(reply);
}

#define SAMPLER(counter) MANAGER, "CreateSampler", "aota{sv}", 1, (counter), USEC_PER_SEC, 0

static void test_samplers(Fixture *f, const void *data) {
        g_autofree char *mine = open_counter(f->alice), *hers = open_counter(f->carol);

        for (unsigned i = 0; i < SAMPLERS; i++)
                make(f, client_call(f->alice, SAMPLER(mine)));
        client_refused(f->alice, LIMITED, SAMPLER(mine));
        assert_names(f->alice, "SamplersPerUser");
        make(f, client_call(f->carol, SAMPLER(hers)));
        kept_close(f);
        await(client_count(f->alice, "sampler") == 0);
        make(f, client_call(f->alice, SAMPLER(mine)));
}

#define MONITOR MANAGER, "RegisterMonitor", "sa{sv}", "a monitor", 1, BREAKPOINTS

static void test_monitors(Fixture *f, const void *data) {
        for (unsigned i = 0; i < MONITORS; i++)
                make(f, client_call(f->alice, MONITOR));
        client_refused(f->alice, LIMITED, MONITOR);
        assert_names(f->alice, "MonitorsPerUser");
        kept_close(f);
        await(client_count(f->alice, "monitor") == 0);
        make(f, client_call(f->alice, MONITOR));
}

static bool signal_tells_missed(Client *c) {
        g_autoptr(sd_bus_message) m = client_next(c, 100 * USEC_PER_MSEC);
        uint64_t tick, nsec, missed;

        if (!m || !sd_bus_message_is_signal(m, PERFALLOC_SAMPLER_INTERFACE, "Sample"))
                return false;
        g_assert_cmpint(sd_bus_message_read(m, "ttt", &tick, &nsec, &missed), >, 0);
        return missed > 0;
}

/* No more signals are sent, because it is unknown whether the client reads them. */
static void test_signals(Fixture *f, const void *data) {
        g_autofree char *mine = open_counter(f->alice);

        make(f, client_call(f->alice, MANAGER, "CreateSampler", "aota{sv}", 1, mine,
                            10 * USEC_PER_MSEC, 1, "signal", "b", 1));
        await(signal_tells_missed(f->alice));
}

/* ---- what one waits for ---- */

static void test_waits(Fixture *f, const void *data) {
        g_autofree char *first = take_hold(f, f->carol, "exclusive");
        g_autofree char *mine = take_hold(f, f->alice, "shared");
        uint64_t cookies[CALLS];

        for (unsigned i = 0; i < CALLS; i++)
                cookies[i] = client_send(f->alice, mine, HOLD, "Wait", NULL);
        client_refused(f->alice, LIMITED, mine, HOLD, "Wait", NULL);
        assert_names(f->alice, "PendingCallsPerUser");
        g_assert_true(hold_wait(f->carol, first));
        hold_release(f->carol, first);
        for (unsigned i = 0; i < CALLS; i++) {
                g_autoptr(sd_bus_message) reply = client_receive(f->alice, cookies[i]);

                g_assert_false(sd_bus_message_is_method_error(reply, NULL));
        }
        g_assert_true(hold_wait(f->alice, mine));
}

typedef struct Outcome {
        unsigned succeeded, limited;
        char *words; /* of a refusal */
} Outcome;

static void outcome_take(Outcome *o, sd_bus_message *answer) {
        const sd_bus_error *error = sd_bus_message_get_error(answer);

        if (!error) {
                o->succeeded++;
                return;
        }
        if (strcmp(error->name, LIMITED) != 0)
                g_error("neither done nor refused: %s: %s", error->name, error->message);
        o->limited++;
        g_free(o->words);
        o->words = g_strdup(error->message);
}

/* polkit does not answer for a while. */
static void test_checks(Fixture *f, const void *data) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *roots = NULL;
        uint64_t cookies[30];
        unsigned n_named = 0;
        Outcome o = {};

        g_free(open_counter(f->alice));
        rig("polkit-signal STOP", NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(cookies); i++)
                cookies[i] = client_send(f->alice, MANAGER, "Hold", "sa{sv}", "for a moment", 1,
                                         BREAKPOINTS);
        roots = take_hold(f, root, "shared");
        g_assert_true(hold_wait(root, roots));
        rig("polkit-signal CONT", NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(cookies); i++) {
                g_autoptr(sd_bus_message) answer = client_receive(f->alice, cookies[i]);

                outcome_take(&o, answer);
                n_named += o.words && strstr(o.words, "PendingCallsPerUser= in perfallocd.conf");
        }
        g_assert_cmpuint(o.succeeded, >, 0);
        g_assert_cmpuint(n_named, >, 0);
        g_free(o.words);
        g_free(open_counter(f->alice));
}

/* Sends calls faster than they are served, but not too many for the bus. */
static void burst(Client *c, Outcome *o) {
        uint64_t cookies[100];

        for (size_t i = 0; i < G_N_ELEMENTS(cookies); i++)
                cookies[i] = client_send(c, MANAGER, "ListEvents", "s", "*");
        for (size_t i = 0; i < G_N_ELEMENTS(cookies); i++) {
                g_autoptr(sd_bus_message) answer = client_receive(c, cookies[i]);

                outcome_take(o, answer);
        }
}

static bool burst_is_limited(Client *c, Outcome *o) {
        burst(c, o);
        return o->limited > 0;
}

static void test_queued_calls(Fixture *f, const void *data) {
        Outcome o = {};

        await(burst_is_limited(f->alice, &o));
        g_assert_nonnull(strstr(o.words, "QueuedCallsPerUser= in perfallocd.conf"));
        g_assert_cmpuint(o.succeeded, >, 0);
        g_free(o.words);
        g_free(open_counter(f->alice));
        g_free(open_counter(f->carol));
}

#define PROBE PERFALLOC_OBJECT_PATH "/pmu/breakpoint", PERFALLOC_PMU_INTERFACE, "Probe", NULL

static void probe(Client *c) {
        g_autoptr(sd_bus_message) reply = client_call(c, PROBE);
        uint32_t cpu, n_free;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(uu)"), >, 0);
        g_assert_cmpint(sd_bus_message_read(reply, "(uu)", &cpu, &n_free), >, 0);
        g_assert_cmpuint(n_free, >, 0);
}

/* A user that asks too often waits, and delays others only for a moment. */
static void test_probes(Fixture *f, const void *data) {
        g_autoptr(Client) root = client_new("root");
        uint64_t cookies[CALLS];
        Outcome o = {};

        for (unsigned i = 0; i < 10; i++)
                probe(f->alice);
        for (size_t i = 0; i < G_N_ELEMENTS(cookies); i++)
                cookies[i] = client_send(f->alice, PROBE);
        for (unsigned i = 0; i < 3; i++) {
                probe(f->carol);
                probe(root);
        }
        for (size_t i = 0; i < G_N_ELEMENTS(cookies); i++) {
                g_autoptr(sd_bus_message) answer = client_receive(f->alice, cookies[i]);

                outcome_take(&o, answer);
        }
        g_assert_cmpuint(o.succeeded, ==, CALLS);
}

/* The handlers never read them. */
static void test_large_call(Fixture *f, const void *data) {
        g_autofree char *words = g_strnfill(4 * 1024 * 1024, 'x');

        client_refused(f->alice, LIMITED, MANAGER, "Hold", "sa{sv}", words, 0);
        g_assert_nonnull(strstr(f->alice->refusal, "larger than"));
        client_refused(f->alice, LIMITED, PERFALLOC_OBJECT_PATH,
                       "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "s", words);
        g_free(take_hold(f, f->alice, "shared"));
}

static void test_many_names(Fixture *f, const void *data) {
        g_autoptr(sd_bus_message) m = client_message(f->alice, MANAGER, "ReadCounters"),
                                  reply = NULL;
        g_autofree char *path = open_counter(f->alice);

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "o"), >=, 0);
        for (int i = 0; i < 4096; i++)
                g_assert_cmpint(sd_bus_message_append_basic(m, 'o', path), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        reply = client_call_message(f->alice, m);
}

/* Sends calls without a reply, as fast as the bus takes them, until the other side closes; not so
 * many that the bus refuses others' calls. */
static int flood_play(int fd, const void *data) {
        g_autoptr(Client) me = client_new("alice");
        struct pollfd end = { .fd = fd, .events = POLLIN };

        for (unsigned i = 0; i < FLOOD && poll(&end, 1, 0) == 0; i++) {
                g_autoptr(sd_bus_message) m = client_message(me, MANAGER, "ListEvents");

                g_assert_cmpint(sd_bus_message_append(m, "s", "no such event"), >=, 0);
                g_assert_cmpint(sd_bus_message_set_expect_reply(m, false), >=, 0);
                g_assert_cmpint(sd_bus_send(me->bus, m, NULL), >=, 0);
                g_assert_cmpint(sd_bus_flush(me->bus), >=, 0);
                if (i == 1000)
                        act_say(fd, 'o');
        }
        (void) act_hear(fd);
        return 0;
}

/* Calls of others, timers and leases go on. */
static void test_flood(Fixture *f, const void *data) {
        g_autoptr(Actor) alice = actor_new("alice", flood_play, NULL);
        g_autofree char *first = NULL, *second = NULL;
        pid_t pid = service_pid();
        int lease;

        g_assert_cmpint(actor_hear(alice), ==, 'o');
        first = hold_take_unattended(f->carol, 50 * USEC_PER_MSEC, "a{sv}", 1, BREAKPOINTS);
        await(hold_is(f->carol, first, "ended"));
        second = hold_take(f->carol, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(f->carol, second));
        close_fd(lease);
        await(hold_is(f->carol, second, "ended"));
        g_assert_cmpint(actor_join(alice), ==, 0);
        g_assert_cmpint(service_pid(), ==, pid);
}

/* Messages as large as the bus allows: they are dropped, and others' calls come through. */
static int huge_play(int fd, const void *data) {
        enum { SIZE = 28 << 20 };
        g_autoptr(Client) me = client_new("alice");

        for (unsigned i = 0; i < ROUNDS(3); i++) {
                g_autoptr(sd_bus_message) m = client_message(me, MANAGER, "HasSamplers");
                void *space;

                g_assert_cmpint(sd_bus_message_append_array_space(m, 'y', SIZE, &space), >=, 0);
                memset(space, 'x', SIZE);
                g_assert_cmpint(sd_bus_message_set_expect_reply(m, false), >=, 0);
                g_assert_cmpint(sd_bus_send(me->bus, m, NULL), >=, 0);
                g_assert_cmpint(sd_bus_flush(me->bus), >=, 0);
        }
        act_say(fd, 'o');
        return 0;
}

/* While the bus has no room for a message, the bus itself refuses it. */
static bool is_served(Client *c) {
        g_autoptr(sd_bus_message) answer =
                client_receive(c, client_send(c, MANAGER, "HasSamplers", NULL));

        return !sd_bus_message_is_method_error(answer, NULL);
}

static void test_huge(Fixture *f, const void *data) {
        g_autoptr(Actor) alice = actor_new("alice", huge_play, NULL);
        pid_t pid = service_pid();

        await(is_served(f->carol));
        g_assert_cmpint(actor_hear(alice), ==, 'o');
        await(is_served(f->carol));
        g_assert_cmpint(actor_join(alice), ==, 0);
        g_assert_cmpint(service_pid(), ==, pid);
}

/* ---- all of it ---- */

static void fill(Fixture *f) {
        g_autofree char *counter = open_counter(f->alice);
        g_autofree char *hold = NULL;

        for (unsigned i = 1; i < COUNTERS; i++)
                g_free(open_counter(f->alice));
        for (unsigned i = 0; i < SAMPLERS; i++)
                make(f, client_call(f->alice, SAMPLER(counter)));
        for (unsigned i = 0; i < MONITORS; i++)
                make(f, client_call(f->alice, MONITOR));
        for (unsigned i = 0; i < HOLDS; i++) {
                g_free(hold);
                hold = take_hold(f, f->alice, "exclusive");
        }
        for (unsigned i = 0; i < CALLS; i++)
                (void) client_send(f->alice, hold, HOLD, "Wait", NULL);
}

static void test_everything(Fixture *f, const void *data) {
        enum { FILLINGS = 20, SLACK = 1024 * 1024 };
        uint64_t before = 0;

        for (unsigned round = 0; round < FILLINGS; round++) {
                fill(f);
                empty(f);
                await(service_descriptors() <= f->descriptors);
                if (round == FILLINGS / 2)
                        before = service_memory();
        }
        g_test_message("private memory: %" PRIu64 " B before, %" PRIu64 " B after", before,
                       service_memory());
        g_assert_cmpuint(service_memory(), <=, before + SLACK);
}

#define ADD(name, test)                                                                            \
        g_test_add("/quota/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("holds", test_holds);
        ADD("holds-in-the-queue", test_queued_holds);
        ADD("counters", test_counters);
        ADD("readers-of-others-counters", test_readers);
        ADD("descriptors", test_descriptors);
        ADD("samplers", test_samplers);
        ADD("monitors", test_monitors);
        ADD("signals", test_signals);
        ADD("calls-that-wait-for-a-grant", test_waits);
        ADD("calls-that-wait-for-polkit", test_checks);
        ADD("calls-that-wait-for-their-turn", test_queued_calls);
        ADD("probes", test_probes);
        ADD("calls-that-are-large", test_large_call);
        ADD("calls-that-name-many", test_many_names);
        ADD("flood-of-calls", test_flood);
        ADD("huge-calls", test_huge);
        ADD("all-at-once-leaves-nothing", test_everything);
        return g_test_run();
}
