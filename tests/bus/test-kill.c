/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The service is killed at any moment, under load, and nobody loses anything.
 *
 * Several clients do at random what clients do, while another thread kills the service; the rig
 * starts it again with what it has stored, as systemd does. What was promised is known here from
 * the answers that came. A call that a kill has cut off may have been done or not, so either is
 * right then: what it was about is unsure until it has been looked at again.
 *
 * PERFALLOC_TEST_KILLS is how often (150).
 */

#include "bus-util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <perfalloc/sample.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define MONITOR       PERFALLOC_MONITOR_INTERFACE
#define SAMPLER       PERFALLOC_SAMPLER_INTERFACE
#define KILLS         150
#define N_CLIENTS     4
#define STORED_MAX    64 /* shelves and logs, for the few objects that are here */
#define N_HOLDS_MAX   6
#define N_COUNTED_MAX 10
#define N_STREAMS_MAX 4
#define N_REGISTERED  2
#define N_WATCHED     2 /* breakpoints that are counted all the time, */
#define N_WATCHING    3 /* by so many monitors; every machine has four on a CPU */
#define SAMPLE_MAX    PERFALLOC_SAMPLE_SIZE(4)

/* ---- what is known ---- */

typedef struct Held {
        char *path;
        int lease; /* -1: unattended */
        bool all;  /* CPUs, and exclusive: those stand in one queue */
        bool granted, unsure;
        uint64_t uid, pid, requested, granted_at;
} Held;

typedef struct Counted {
        char *path;
        Client *client; /* NULL: it has left, and the counter stays */
        uint64_t uid;
        bool monitor, persistent, unsure;
        uint64_t value, enabled;
} Counted;

typedef struct Stream {
        char *path;
        Client *client;
        int fd;
        bool any;
        uint64_t tick, value;
} Stream;

typedef struct Registered {
        char *path;
        Client *client;
        int lease;
} Registered;

typedef struct World {
        Client *root; /* looks at everything */
        Client *clients[N_CLIENTS];
        GPtrArray *holds, *counters, *streams, *monitors;
        bool lost; /* some call was cut off: there may be objects that nobody knows */
        guint n_lost, n_done, n_refused;
} World;

static void held_free(void *p) {
        Held *h = p;

        close_fd(h->lease);
        g_free(h->path);
        g_free(h);
}

static void counted_free(void *p) {
        Counted *c = p;

        g_free(c->path);
        g_free(c);
}

static void stream_free(void *p) {
        Stream *s = p;

        close_fd(s->fd);
        g_free(s->path);
        g_free(s);
}

static void registered_free(void *p) {
        Registered *m = p;

        close_fd(m->lease);
        g_free(m->path);
        g_free(m);
}

static void *any_of(GPtrArray *list) {
        return list->len > 0 ? list->pdata[g_test_rand_int_range(0, (int) list->len)] : NULL;
}

static bool chance(int percent) {
        return g_test_rand_int_range(0, 100) < percent;
}

/* ---- calls that may be cut off ---- */

typedef enum Outcome {
        DONE,
        REFUSED,
        LOST,
} Outcome;

static bool is_one_of(const char *name, const char *const *names) {
        for (; *names; names++)
                if (strcmp(name, *names) == 0)
                        return true;
        return false;
}

static Outcome send_message(World *w, Client *c, sd_bus_message *m, sd_bus_message **ret) {
        /* NoReply is the bus's word for a service that has gone. An activation fails when the
         * service is killed again before it has its name. */
        static const char *const lost[] = {
                SD_BUS_ERROR_NO_REPLY,
                SD_BUS_ERROR_SERVICE_UNKNOWN,
                SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                "org.freedesktop.DBus.Error.Spawn.ChildExited",
                "org.freedesktop.DBus.Error.Spawn.ChildSignaled",
                NULL,
        };
        static const char *const refused[] = {
                PERFALLOC_ERROR_BUSY,        PERFALLOC_ERROR_ENDED,
                PERFALLOC_ERROR_OBSTRUCTED,  PERFALLOC_ERROR_TIMED_OUT,
                SD_BUS_ERROR_UNKNOWN_OBJECT, PERFALLOC_ERROR_NO_COUNTER_LEFT,
                PERFALLOC_ERROR_NOT_OWNER,   NULL,
        };
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call(c->bus, m, AWAIT_SEC * USEC_PER_SEC, &error, ret);

        if (r >= 0) {
                w->n_done++;
                return DONE;
        }
        if (!error.name)
                g_error("%s: %s", sd_bus_message_get_member(m), g_strerror(-r));
        if (is_one_of(error.name, lost)) {
                w->lost = true;
                w->n_lost++;
                return LOST;
        }
        if (!is_one_of(error.name, refused))
                g_error("%s %s: %s: %s", sd_bus_message_get_member(m), sd_bus_message_get_path(m),
                        error.name, error.message);
        w->n_refused++;
        return REFUSED;
}

static Outcome call(World *w, Client *c, const char *path, const char *interface,
                    const char *member, sd_bus_message **ret, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, path, interface, member), reply = NULL;
        Outcome outcome;
        va_list ap;

        if (types) {
                va_start(ap, types);
                g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
                va_end(ap);
        }
        outcome = send_message(w, c, m, &reply);
        if (ret)
                *ret = g_steal_pointer(&reply);
        return outcome;
}

/* Until it is answered, however often the service is killed meanwhile. */
static sd_bus_message *ask(World *w, Client *c, const char *path, const char *interface,
                           const char *member) {
        sd_bus_message *reply = NULL;

        await(call(w, c, path, interface, member, &reply, NULL) == DONE);
        return reply;
}

static const char *read_path(sd_bus_message *m) {
        const char *path;

        g_assert_cmpint(sd_bus_message_read_basic(m, 'o', &path), >, 0);
        return path;
}

static int read_fd(sd_bus_message *m) {
        int fd, own;

        g_assert_cmpint(sd_bus_message_read_basic(m, 'h', &fd), >, 0);
        own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(own, >=, 0);
        return own;
}

static bool has_failed(int lease) {
        struct pollfd p = { .fd = lease };

        return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

/* ---- what clients do ---- */

static void do_hold(World *w, Client *c) {
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        bool unattended = chance(25), exclusive = chance(50), all = chance(80);
        Held *h;

        if (w->holds->len >= N_HOLDS_MAX)
                return;
        m = client_message(c, MANAGER, unattended ? "HoldUnattended" : "Hold");
        if (unattended)
                sd_bus_message_append(m, "st", "a test", (uint64_t) 0);
        else
                sd_bus_message_append(m, "s", "a test");
        sd_bus_message_open_container(m, 'a', "{sv}");
        sd_bus_message_append(m, "{sv}", BREAKPOINTS);
        if (!all)
                sd_bus_message_append(m, "{sv}", "cpus", "s", "0");
        if (exclusive)
                sd_bus_message_append(m, "{sv}", "mode", "s", "exclusive");
        if (chance(70))
                sd_bus_message_append(m, "{sv}", "wait_usec", "t", 600 * USEC_PER_SEC);
        if (chance(50))
                sd_bus_message_append(m, "{sv}", "yield_usec", "t", 10 * USEC_PER_SEC);
        sd_bus_message_close_container(m);
        if (send_message(w, c, m, &reply) != DONE)
                return;
        h = g_new0(Held, 1);
        h->path = g_strdup(read_path(reply));
        h->lease = unattended ? -1 : read_fd(reply);
        h->all = all && exclusive;
        g_ptr_array_add(w->holds, h);
}

static void do_release(World *w, Client *c) {
        Held *h = any_of(w->holds);

        if (!h)
                return;
        h->unsure = true;
        if (call(w, w->root, h->path, HOLD, "Release", NULL, NULL) != LOST)
                g_ptr_array_remove_fast(w->holds, h);
}

/* This nobody can miss, not even who does not run. */
static void do_drop(World *w, Client *c) {
        Held *h = any_of(w->holds);

        if (h && h->lease >= 0)
                g_ptr_array_remove_fast(w->holds, h);
}

static int n_watching(const World *w) {
        int n = 0;

        for (guint i = 0; i < w->counters->len; i++)
                n += ((const Counted *) w->counters->pdata[i])->monitor;
        return n;
}

static void do_open(World *w, Client *c) {
        static const char *const events[] = { "page-faults", "task-clock", "context-switches" };
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        g_autofree char *event = NULL;
        bool monitor = chance(30) && n_watching(w) < N_WATCHING;
        Counted *counted;

        if (w->counters->len >= N_COUNTED_MAX)
                return;
        event = monitor ? watched_event((size_t) g_test_rand_int_range(0, N_WATCHED))
                        : g_strdup(events[g_test_rand_int_range(0, G_N_ELEMENTS(events))]);
        m = client_message(c, MANAGER, "OpenCounters");
        sd_bus_message_append(m, "as", 1, event);
        sd_bus_message_open_container(m, 'a', "{sv}");
        if (monitor)
                sd_bus_message_append(m, "{sv}{sv}", "scope", "s", "cpu", "role", "s", "monitor");
        sd_bus_message_close_container(m);
        if (send_message(w, c, m, &reply) != DONE)
                return;
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        counted = g_new0(Counted, 1);
        counted->path = g_strdup(read_path(reply));
        counted->client = c;
        counted->monitor = monitor;
        g_ptr_array_add(w->counters, counted);
}

static void look_at_value(World *w, Counted *c) {
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t value, enabled;

        if (call(w, w->root, c->path, COUNTER, "Read", &reply, NULL) != DONE)
                return;
        g_assert_cmpint(sd_bus_message_read(reply, "ttts", &value, &enabled, NULL, NULL), >, 0);
        if (value < c->value || enabled < c->enabled)
                g_error("%s fell back from %" PRIu64 " (enabled %" PRIu64 ") to %" PRIu64
                        " (enabled %" PRIu64 ")",
                        c->path, c->value, c->enabled, value, enabled);
        c->value = value;
        c->enabled = enabled;
}

static void do_read(World *w, Client *c) {
        Counted *counted = any_of(w->counters);

        if (counted)
                look_at_value(w, counted);
}

static void do_switch(World *w, Client *c) {
        static const char *const members[] = { "Start", "Stop", "Reset" };
        const char *member = members[g_test_rand_int_range(0, G_N_ELEMENTS(members))];
        Counted *counted = any_of(w->counters);

        if (!counted)
                return;
        if (strcmp(member, "Reset") == 0)
                counted->value = counted->enabled = 0;
        (void) call(w, w->root, counted->path, COUNTER, member, NULL, NULL);
}

static void do_persist(World *w, Client *c) {
        Counted *counted = any_of(w->counters);

        if (!counted || !counted->client || counted->persistent)
                return;
        if (call(w, counted->client, counted->path, COUNTER, "Persist", NULL, NULL) == DONE)
                counted->persistent = true;
        else
                counted->unsure = true;
}

static void do_close(World *w, Client *c) {
        Counted *counted = any_of(w->counters);

        if (!counted)
                return;
        counted->unsure = true;
        if (call(w, w->root, counted->path, COUNTER, "Close", NULL, NULL) != LOST)
                g_ptr_array_remove_fast(w->counters, counted);
}

static void do_sample(World *w, Client *c) {
        static const uint64_t intervals[] = { 1000, 3000, 20000, 1000000 };
        g_autoptr(sd_bus_message) reply = NULL;
        Counted *counted = any_of(w->counters);
        Stream *s;

        if (!counted || counted->client != c || w->streams->len >= N_STREAMS_MAX)
                return;
        if (call(w, c, MANAGER, "CreateSampler", &reply, "aota{sv}", 1, counted->path,
                 intervals[g_test_rand_int_range(0, G_N_ELEMENTS(intervals))], 0) != DONE)
                return;
        s = g_new0(Stream, 1);
        s->path = g_strdup(read_path(reply));
        s->client = c;
        s->fd = read_fd(reply);
        g_ptr_array_add(w->streams, s);
}

static void do_block(World *w, Client *c) {
        (void) call(w, c, MANAGER, chance(50) ? "BlockSamplers" : "UnblockSamplers", NULL, NULL);
}

static void do_end_sampler(World *w, Client *c) {
        Stream *s = any_of(w->streams);

        if (s)
                g_ptr_array_remove_fast(w->streams, s);
}

static void do_register(World *w, Client *c) {
        g_autoptr(sd_bus_message) reply = NULL;
        Registered *m;

        if (w->monitors->len >= N_REGISTERED || call(w, c, MANAGER, "RegisterMonitor", &reply,
                                                     "sa{sv}", "a test", 1, BREAKPOINTS) != DONE)
                return;
        m = g_new0(Registered, 1);
        m->path = g_strdup(read_path(reply));
        m->client = c;
        m->lease = read_fd(reply);
        g_ptr_array_add(w->monitors, m);
}

static void do_end_monitor(World *w, Client *c) {
        Registered *m = any_of(w->monitors);

        if (m)
                g_ptr_array_remove_fast(w->monitors, m);
}

static void do_write(World *w, Client *c) {
        watched_write((size_t) g_test_rand_int_range(0, N_WATCHED), 100);
}

/* ---- clients come and go ---- */

static const char *const users[N_CLIENTS] = { "root", "root", "alice", "alice" };

static void forget_of(GPtrArray *list, const Client *c, size_t offset) {
        for (guint i = list->len; i-- > 0;)
                if (*(Client **) ((char *) list->pdata[i] + offset) == c)
                        g_ptr_array_remove_index_fast(list, i);
}

/* Its leases are this process's, and stay. */
static void client_leave(World *w, size_t i) {
        Client *c = w->clients[i];

        for (guint k = w->counters->len; k-- > 0;) {
                Counted *counted = w->counters->pdata[k];

                if (counted->client != c)
                        continue;
                if (counted->persistent)
                        counted->client = NULL;
                else if (!counted->unsure)
                        g_ptr_array_remove_index_fast(w->counters, k);
                else
                        counted->client = NULL;
        }
        forget_of(w->streams, c, offsetof(Stream, client));
        forget_of(w->monitors, c, offsetof(Registered, client));
        g_clear_pointer(&w->clients[i], client_free);
}

static void do_leave(World *w, Client *c) {
        for (size_t i = 0; i < N_CLIENTS; i++)
                if (w->clients[i] == c) {
                        client_leave(w, i);
                        w->clients[i] = client_new(users[i]);
                }
}

/* Answers whoever is asked to yield. */
static void answer_yields(World *w) {
        for (size_t i = 0; i < N_CLIENTS; i++) {
                Client *c = w->clients[i];
                sd_bus_message *m;

                while ((m = client_next(c, 0))) {
                        const char *hold;

                        if (sd_bus_message_is_signal(m, MONITOR, "Yield") > 0 &&
                            sd_bus_message_read(m, "ot", &hold, NULL) > 0)
                                (void) client_send(c, sd_bus_message_get_path(m), MONITOR,
                                                   "Yielded", "o", hold);
                        sd_bus_message_unref(m);
                }
        }
}

static void act(World *w) {
        static const struct {
                void (*act)(World *w, Client *c);
                int weight;
        } acts[] = {
                { do_hold, 12 },  { do_release, 5 },     { do_drop, 6 },    { do_open, 12 },
                { do_read, 12 },  { do_switch, 8 },      { do_persist, 3 }, { do_close, 6 },
                { do_sample, 6 }, { do_end_sampler, 3 }, { do_block, 4 },   { do_register, 3 },
                { do_write, 10 }, { do_end_monitor, 2 }, { do_leave, 2 },
        };
        int sum = 0, at;

        for (size_t i = 0; i < G_N_ELEMENTS(acts); i++)
                sum += acts[i].weight;
        at = g_test_rand_int_range(0, sum);
        for (size_t i = 0; i < G_N_ELEMENTS(acts); i++) {
                at -= acts[i].weight;
                if (at < 0) {
                        acts[i].act(w, w->clients[g_test_rand_int_range(0, N_CLIENTS)]);
                        break;
                }
        }
        answer_yields(w);
}

/* ---- the killer ---- */

typedef struct Killer {
        guint delays[3];
        size_t n;
        gint done;
        pid_t last; /* that it killed */
        GThread *thread;
} Killer;

static pid_t running_pid(const char *file) {
        g_autofree char *path =
                g_build_filename(g_getenv("PERFALLOC_RIG_DIR"), "state", file, NULL);
        g_autofree char *text = NULL;

        return g_file_get_contents(path, &text, NULL, NULL) ? atoi(text) : 0;
}

static void *killer_run(void *data) {
        Killer *k = data;

        for (size_t i = 0; i < k->n; i++) {
                pid_t pid;

                g_usleep(k->delays[i]);
                pid = running_pid("service.pid");
                /* EPERM: this process is somebody else for a moment, in client_new() */
                while (pid > 0 && kill(pid, SIGKILL) < 0 && errno == EPERM)
                        g_usleep(100);
                k->last = pid;
        }
        g_atomic_int_set(&k->done, 1);
        return NULL;
}

/* One kill, or another one while the service starts. */
static void killer_start(Killer *k) {
        *k = (Killer){ .n = chance(70) ? 1 : chance(70) ? 2 : 3 };
        for (size_t i = 0; i < k->n; i++)
                k->delays[i] = (guint) g_test_rand_int_range(0, i == 0 ? 12000 : 25000);
        k->thread = g_thread_new("killer", killer_run, k);
}

static bool killer_is_done(Killer *k) {
        return g_atomic_int_get(&k->done);
}

static bool is_back(const Killer *k) {
        pid_t pid = running_pid("service.ready");

        return pid > 0 && pid != k->last;
}

/* The service runs again; how often it was killed. */
static unsigned killer_end(Killer *k) {
        g_thread_join(k->thread);
        await(is_back(k));
        return (unsigned) k->n;
}

/* ---- what must be so ---- */

static char *read_text(sd_bus_message *m) {
        const char *contents, *s;
        uint64_t t = 0;
        uint32_t u = 0;
        char type;
        int b;

        g_assert_cmpint(sd_bus_message_peek_type(m, &type, &contents), >, 0);
        if (strlen(contents) != 1 || !strchr("sotub", *contents)) {
                sd_bus_message_skip(m, "v");
                return NULL;
        }
        switch (*contents) {
        case 't':
                sd_bus_message_read(m, "v", contents, &t);
                return g_strdup_printf("%" PRIu64, t);
        case 'u':
                sd_bus_message_read(m, "v", contents, &u);
                return g_strdup_printf("%" PRIu32, u);
        case 'b':
                sd_bus_message_read(m, "v", contents, &b);
                return g_strdup(b ? "yes" : "no");
        default:
                sd_bus_message_read(m, "v", contents, &s);
                return g_strdup(s);
        }
}

static void read_properties(sd_bus_message *m, GHashTable *properties) {
        const char *name;

        sd_bus_message_enter_container(m, 'a', "{sv}");
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                char *value;

                sd_bus_message_read_basic(m, 's', &name);
                value = read_text(m);
                if (value)
                        g_hash_table_insert(properties, g_strdup(name), value);
                sd_bus_message_exit_container(m);
        }
        sd_bus_message_exit_container(m);
}

/* All objects but PMUs. */
static GHashTable *look(World *w) {
        g_autoptr(sd_bus_message) m =
                ask(w, w->root, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                    "GetManagedObjects");
        GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                 (GDestroyNotify) g_hash_table_unref);
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}"), >, 0);
        while (sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}") > 0) {
                GHashTable *properties =
                        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

                sd_bus_message_read_basic(m, 'o', &path);
                sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
                while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
                        sd_bus_message_skip(m, "s");
                        read_properties(m, properties);
                        sd_bus_message_exit_container(m);
                }
                sd_bus_message_exit_container(m);
                sd_bus_message_exit_container(m);
                if (g_str_has_prefix(path, PERFALLOC_OBJECT_PATH "/pmu/") ||
                    strcmp(path, PERFALLOC_OBJECT_PATH) == 0)
                        g_hash_table_unref(properties);
                else
                        g_hash_table_insert(seen, g_strdup(path), properties);
        }
        return seen;
}

static const char *text_of(GHashTable *properties, const char *name) {
        return g_hash_table_lookup(properties, name) ?: "";
}

static uint64_t number_of(GHashTable *properties, const char *name) {
        return g_ascii_strtoull(text_of(properties, name), NULL, 10);
}

static bool is(GHashTable *properties, const char *name, const char *value) {
        return strcmp(text_of(properties, name), value) == 0;
}

/* A hold that was not granted yet may have ended by itself: somebody did not give way in time. */
static bool hold_may_be_over(const Held *h, GHashTable *properties) {
        return h->unsure || !properties ||
               (!h->granted && !is(properties, "Result", "lease-closed"));
}

/* False: it is over, as it may be. */
static bool check_hold(Held *h, GHashTable *properties) {
        if (!properties || is(properties, "State", "ended")) {
                if ((h->granted && !h->unsure) || !hold_may_be_over(h, properties))
                        g_error("%s, which was %s, is lost: %s", h->path,
                                h->granted ? "granted" : "asked for",
                                properties ? text_of(properties, "Result") : "unknown");
                return false;
        }
        h->unsure = false;
        if (h->requested == 0) {
                h->uid = number_of(properties, "Uid");
                h->pid = number_of(properties, "Pid");
                h->requested = number_of(properties, "RequestTimestamp");
        }
        g_assert_cmpuint(h->uid, ==, number_of(properties, "Uid"));
        g_assert_cmpuint(h->pid, ==, number_of(properties, "Pid"));
        g_assert_cmpuint(h->requested, ==, number_of(properties, "RequestTimestamp"));
        if (h->granted && !is(properties, "State", "granted"))
                g_error("%s was granted, and is %s", h->path, text_of(properties, "State"));
        if (is(properties, "State", "granted")) {
                if (!h->granted)
                        h->granted_at = number_of(properties, "GrantTimestamp");
                h->granted = true;
                g_assert_cmpuint(h->granted_at, ==, number_of(properties, "GrantTimestamp"));
        }
        if (h->lease >= 0 && has_failed(h->lease))
                g_error("%s is %s, but its lease has failed", h->path,
                        text_of(properties, "State"));
        return true;
}

static uint64_t id_of(const char *path) {
        return g_ascii_strtoull(strrchr(path, '/') + 1, NULL, 10);
}

/* Nobody has overtaken anybody: of those that stand in one queue the oldest has the counters, or
 * nobody. */
static void check_queue(World *w, GHashTable *seen) {
        uint64_t oldest = UINT64_MAX;

        for (guint i = 0; i < w->holds->len; i++) {
                const Held *h = w->holds->pdata[i];

                if (h->all)
                        oldest = MIN(oldest, id_of(h->path));
        }
        for (guint i = 0; i < w->holds->len; i++) {
                const Held *h = w->holds->pdata[i];
                GHashTable *properties = g_hash_table_lookup(seen, h->path);

                if (h->all && id_of(h->path) != oldest && !is(properties, "State", "queued"))
                        g_error("%s is %s before hold %" PRIu64, h->path,
                                text_of(properties, "State"), oldest);
        }
}

static void check_holds(World *w, GHashTable *seen) {
        for (guint i = w->holds->len; i-- > 0;) {
                Held *h = w->holds->pdata[i];

                if (!check_hold(h, g_hash_table_lookup(seen, h->path)))
                        g_ptr_array_remove_index_fast(w->holds, i);
        }
        check_queue(w, seen);
}

static bool is_held(World *w) {
        for (guint i = 0; i < w->holds->len; i++)
                if (((const Held *) w->holds->pdata[i])->granted)
                        return true;
        return false;
}

static void check_counters(World *w, GHashTable *seen) {
        for (guint i = w->counters->len; i-- > 0;) {
                Counted *c = w->counters->pdata[i];
                GHashTable *properties = g_hash_table_lookup(seen, c->path);

                if (!properties ||
                    (c->unsure && !c->client && is(properties, "Persistent", "no"))) {
                        if (!c->unsure)
                                g_error("%s is lost", c->path);
                        g_ptr_array_remove_index_fast(w->counters, i);
                        continue;
                }
                if (c->unsure)
                        c->persistent = is(properties, "Persistent", "yes");
                c->unsure = false;
                g_assert_cmpint(c->persistent, ==, is(properties, "Persistent", "yes"));
                if (c->uid == 0)
                        c->uid = number_of(properties, "Uid");
                g_assert_cmpuint(c->uid, ==, number_of(properties, "Uid"));
                look_at_value(w, c);
        }
}

/* Ticks go on where they were, and what was not sent is told as missed. */
static void check_stream(Stream *s) {
        union {
                struct perfalloc_sample sample;
                char room[SAMPLE_MAX];
        } record;
        ssize_t n;

        while ((n = recv(s->fd, &record, sizeof(record), MSG_DONTWAIT)) > 0) {
                const struct perfalloc_sample *sample = &record.sample;
                uint64_t expected = sample->missed + (s->any ? s->tick + 1 : 0);

                g_assert_cmpint(n, ==, PERFALLOC_SAMPLE_SIZE(1));
                if (sample->tick != expected)
                        g_error("%s: tick %" PRIu64 " after %" PRIu64 " with %" PRIu64 " missed",
                                s->path, sample->tick, s->tick, sample->missed);
                s->any = true;
                s->tick = sample->tick;
        }
        if (n == 0)
                g_error("%s: the stream has ended", s->path);
}

static void check_streams(World *w, GHashTable *seen) {
        for (guint i = 0; i < w->streams->len; i++) {
                Stream *s = w->streams->pdata[i];

                if (!g_hash_table_contains(seen, s->path))
                        g_error("%s is lost", s->path);
                check_stream(s);
        }
}

static void check_monitors(World *w, GHashTable *seen) {
        for (guint i = 0; i < w->monitors->len; i++) {
                Registered *m = w->monitors->pdata[i];

                if (!g_hash_table_contains(seen, m->path))
                        g_error("%s is lost", m->path);
                g_assert_false(has_failed(m->lease));
        }
}

static bool is_known(GPtrArray *list, const char *path) {
        for (guint i = 0; i < list->len; i++)
                if (strcmp(*(char **) list->pdata[i], path) == 0)
                        return true;
        return false;
}

G_STATIC_ASSERT(offsetof(Held, path) == 0 && offsetof(Counted, path) == 0);
G_STATIC_ASSERT(offsetof(Stream, path) == 0 && offsetof(Registered, path) == 0);

/* What a call has made that was cut off: nobody but root can do away with what has neither lease
 * nor stream nor a client that leaves. */
static void clear_unknown(World *w, const char *path, GHashTable *properties) {
        if (!w->lost)
                return;
        if (g_str_has_prefix(path, PERFALLOC_OBJECT_PATH "/counter/"))
                (void) call(w, w->root, path, COUNTER, "Close", NULL, NULL);
        else if (g_str_has_prefix(path, PERFALLOC_OBJECT_PATH "/hold/") &&
                 is(properties, "Unattended", "yes"))
                (void) call(w, w->root, path, HOLD, "Release", NULL, NULL);
}

/* Whether there is nothing that nobody has made, or whose owner has gone. */
static bool nothing_is_left(World *w, char **ret) {
        g_autoptr(GHashTable) seen = look(w);
        const char *path;
        GHashTableIter i;
        void *key, *value;

        g_clear_pointer(ret, g_free);
        g_hash_table_iter_init(&i, seen);
        while (g_hash_table_iter_next(&i, &key, &value)) {
                path = key;
                if (is_known(w->holds, path) || is_known(w->counters, path) ||
                    is_known(w->streams, path) || is_known(w->monitors, path) ||
                    is(value, "State", "ended"))
                        continue;
                clear_unknown(w, path, value);
                *ret = g_strdup(path);
        }
        answer_yields(w);
        return !*ret;
}

static void check_nothing_is_left(World *w) {
        g_autofree char *path = NULL;
        gint64 end = g_get_monotonic_time() + AWAIT_SEC * G_USEC_PER_SEC;

        while (!nothing_is_left(w, &path)) {
                if (g_get_monotonic_time() > end)
                        g_error("%s should not be there", path);
                g_usleep(1000);
        }
        w->lost = false;
}

/* Monitors have their breakpoints again, or have none while somebody holds them. */
static bool monitors_are_right(World *w) {
        g_autoptr(GHashTable) seen = look(w);

        answer_yields(w);
        check_holds(w, seen);
        for (guint i = 0; i < w->counters->len; i++) {
                const Counted *c = w->counters->pdata[i];
                GHashTable *properties = g_hash_table_lookup(seen, c->path);

                if (!c->monitor || !properties)
                        continue;
                if (is_held(w) && is(properties, "State", "counting"))
                        g_error("%s counts while somebody holds", c->path);
                if (w->holds->len == 0 &&
                    (is(properties, "State", "yielded") || is(properties, "State", "error")))
                        return false;
        }
        return true;
}

static void check_all(World *w) {
        g_autoptr(GHashTable) seen = look(w);

        answer_yields(w);
        check_holds(w, seen);
        check_counters(w, seen);
        check_streams(w, seen);
        check_monitors(w, seen);
        check_nothing_is_left(w);
        await(monitors_are_right(w));
        g_assert_cmpint(running_pid("service.stored"), <, STORED_MAX);
}

/* ---- all ---- */

static World world_new(void) {
        World w = {
                .root = client_new("root"),
                .holds = g_ptr_array_new_with_free_func(held_free),
                .counters = g_ptr_array_new_with_free_func(counted_free),
                .streams = g_ptr_array_new_with_free_func(stream_free),
                .monitors = g_ptr_array_new_with_free_func(registered_free),
        };

        for (size_t i = 0; i < N_CLIENTS; i++)
                w.clients[i] = client_new(users[i]);
        return w;
}

static void world_end(World *w) {
        for (guint i = w->holds->len; i-- > 0;) {
                const Held *h = w->holds->pdata[i];

                if (h->lease < 0)
                        sd_bus_message_unref(client_call(w->root, h->path, HOLD, "Release", NULL));
        }
        for (guint i = w->counters->len; i-- > 0;) {
                const Counted *c = w->counters->pdata[i];

                if (c->persistent)
                        sd_bus_message_unref(client_call(w->root, c->path, COUNTER, "Close", NULL));
        }
        g_ptr_array_set_size(w->holds, 0);
        g_ptr_array_set_size(w->counters, 0);
        g_ptr_array_set_size(w->streams, 0);
        g_ptr_array_set_size(w->monitors, 0);
        for (size_t i = 0; i < N_CLIENTS; i++) {
                g_clear_pointer(&w->clients[i], client_free);
                w->clients[i] = client_new(users[i]);
        }
        check_nothing_is_left(w);
}

static void world_done(World *w) {
        g_ptr_array_unref(w->holds);
        g_ptr_array_unref(w->counters);
        g_ptr_array_unref(w->streams);
        g_ptr_array_unref(w->monitors);
        for (size_t i = 0; i < N_CLIENTS; i++)
                client_free(w->clients[i]);
        client_free(w->root);
}

static unsigned n_kills(void) {
        const char *n = g_getenv("PERFALLOC_TEST_KILLS");

        return n ? (unsigned) g_ascii_strtoull(n, NULL, 10) : KILLS;
}

static unsigned world_disturb(World *w) {
        Killer killer;

        killer_start(&killer);
        while (!killer_is_done(&killer))
                act(w);
        return killer_end(&killer);
}

static void test_kill(void) {
        World w = world_new();
        unsigned n = 0, before, stored;

        /* what stays once it has been used is not counted */
        for (unsigned i = 0; i < 200; i++)
                act(&w);
        world_end(&w);
        before = service_descriptors();
        stored = (unsigned) running_pid("service.stored");
        while (n < n_kills()) {
                n += world_disturb(&w);
                check_all(&w);
        }
        world_end(&w);
        g_test_message("%u kills: %u calls were answered, %u refused, %u cut off", n, w.n_done,
                       w.n_refused, w.n_lost);
        await(service_descriptors() <= before + 4);
        await((unsigned) running_pid("service.stored") <= stored + 2);
        world_done(&w);
}

/* A breakpoint counts exactly: nothing of what happens while the service is dead is left out or
 * counted twice, and nothing of what happens in a hold is counted. */
static void test_exact(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *monitor = monitor_open(root, 0, 0);
        uint64_t n_written = 0;

        for (unsigned n = 0; n < n_kills() / 5;) {
                g_autofree char *hold =
                        chance(50) ? hold_take_unattended(root, 0, "a{sv}", 1, BREAKPOINTS) : NULL;
                Killer killer;

                if (hold)
                        (void) hold_wait(root, hold);
                killer_start(&killer);
                while (!killer_is_done(&killer)) {
                        watched_write(0, 10);
                        n_written += hold ? 0 : 10;
                        g_usleep(100);
                }
                n += killer_end(&killer);
                g_assert_true(counter_is(root, monitor, hold ? "yielded" : "counting"));
                if (hold)
                        hold_release(root, hold);
                await(counter_is(root, monitor, "counting"));
                watched_write(0, 7);
                n_written += 7;
                g_assert_cmpuint(counter_value(root, monitor), ==, n_written);
        }
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/kill/under-load", test_kill);
        g_test_add_func("/kill/exact", test_exact);
        return g_test_run();
}
