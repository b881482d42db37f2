/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

#include <fcntl.h>

#define N_HOLDS_MAX   6
#define N_COUNTED_MAX 10
#define N_STREAMS_MAX 4
#define N_REGISTERED  2
#define N_WATCHED     2 /* breakpoints that are always counted, */
#define N_WATCHING    3 /* by so many monitors; every machine has four on a CPU */

static void *any_of(GPtrArray *list) {
        return list->len > 0 ? list->pdata[g_test_rand_int_range(0, (int) list->len)] : NULL;
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

static const char *scarce_pmu(const World *w) {
        return w->soft ? "software" : "breakpoint";
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
        sd_bus_message_append(m, "{sv}", "pmus", "as", 1, scarce_pmu(w));
        if (!all)
                sd_bus_message_append(m, "{sv}", "cpus", "s", "0");
        if (exclusive)
                sd_bus_message_append(m, "{sv}", "mode", "s", "exclusive");
        if (chance(70))
                sd_bus_message_append(m, "{sv}", "wait_usec", "t", 600 * USEC_PER_SEC);
        if (chance(50))
                sd_bus_message_append(m, "{sv}", "yield_usec", "t", 10 * USEC_PER_SEC);
        sd_bus_message_close_container(m);
        if (world_send(w, c, m, &reply) != DONE)
                return;
        h = g_new0(Held, 1);
        h->path = g_strdup(read_path(reply));
        h->lease = unattended ? -1 : read_fd(reply);
        h->all = all;
        h->alone = all && exclusive;
        g_ptr_array_add(w->holds, h);
}

static void do_release(World *w, Client *c) {
        Held *h = any_of(w->holds);

        if (!h)
                return;
        h->unsure = true;
        if (world_call(w, w->root, h->path, HOLD, "Release", NULL, NULL) != LOST)
                g_ptr_array_remove_fast(w->holds, h);
}

/* Closes a lease: the service learns of that even if it is down. */
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

static Counted *counted_add(World *w, Client *c, sd_bus_message *opened) {
        Counted *counted = g_new0(Counted, 1);

        g_assert_cmpint(sd_bus_message_enter_container(opened, 'a', "o"), >, 0);
        counted->path = g_strdup(read_path(opened));
        counted->client = c;
        g_ptr_array_add(w->counters, counted);
        return counted;
}

static void do_open(World *w, Client *c) {
        static const char *const events[] = { "page-faults", "task-clock", "context-switches" };
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        g_autofree char *event = NULL;
        bool monitor = chance(30) && n_watching(w) < N_WATCHING;

        if (w->counters->len >= N_COUNTED_MAX)
                return;
        event = monitor && !w->soft
                        ? watched_event((size_t) g_test_rand_int_range(0, N_WATCHED))
                        : g_strdup(events[g_test_rand_int_range(0, G_N_ELEMENTS(events))]);
        m = client_message(c, MANAGER, "OpenCounters");
        sd_bus_message_append(m, "as", 1, event);
        sd_bus_message_open_container(m, 'a', "{sv}");
        if (monitor)
                sd_bus_message_append(m, "{sv}{sv}", "scope", "s", "cpu", "role", "s", "monitor");
        sd_bus_message_close_container(m);
        if (world_send(w, c, m, &reply) != DONE)
                return;
        counted_add(w, c, reply)->monitor = monitor;
}

/* A kill may come between the calls. */
static void do_attach(World *w, Client *c) {
        g_autoptr(sd_bus_message) reply = NULL;
        const char *path;
        int proof;

        if (w->tree == 0 || w->counters->len >= N_COUNTED_MAX)
                return;
        if (world_call(w, c, MANAGER, "OpenCounters", &reply, "asa{sv}", 1, "page-faults", 2,
                       "attach", "b", false, "start", "b", false) != DONE)
                return;
        proof = client_proof(c, w->tree);
        path = counted_add(w, c, reply)->path;
        (void) world_call(w, c, path, COUNTER, "AttachProcess", NULL, "ua{sv}", (uint32_t) w->tree,
                          2, "descendants", "b", true, "procfd", "h", proof);
        (void) world_call(w, c, path, COUNTER, "Start", NULL, NULL);
}

static void do_read(World *w, Client *c) {
        Counted *counted = any_of(w->counters);

        if (counted)
                counted_look(w, counted);
}

static void do_switch(World *w, Client *c) {
        static const char *const members[] = { "Start", "Stop", "Reset" };
        const char *member = members[g_test_rand_int_range(0, G_N_ELEMENTS(members))];
        Counted *counted = any_of(w->counters);

        if (!counted)
                return;
        if (strcmp(member, "Reset") == 0)
                counted->value = counted->enabled = 0;
        (void) world_call(w, w->root, counted->path, COUNTER, member, NULL, NULL);
}

static void do_persist(World *w, Client *c) {
        Counted *counted = any_of(w->counters);

        if (!counted || !counted->client || counted->persistent)
                return;
        if (world_call(w, counted->client, counted->path, COUNTER, "Persist", NULL, NULL) == DONE)
                counted->persistent = true;
        else
                counted->unsure = true;
}

static void do_close(World *w, Client *c) {
        Counted *counted = any_of(w->counters);

        if (!counted)
                return;
        counted->unsure = true;
        if (world_call(w, w->root, counted->path, COUNTER, "Close", NULL, NULL) != LOST)
                g_ptr_array_remove_fast(w->counters, counted);
}

static void do_sample(World *w, Client *c) {
        static const uint64_t intervals[] = { 1000, 3000, 20000, 1000000 };
        g_autoptr(sd_bus_message) reply = NULL;
        Counted *counted = any_of(w->counters);
        Stream *s;

        if (!counted || counted->client != c || w->streams->len >= N_STREAMS_MAX)
                return;
        if (world_call(w, c, MANAGER, "CreateSampler", &reply, "aota{sv}", 1, counted->path,
                       intervals[g_test_rand_int_range(0, G_N_ELEMENTS(intervals))], 0) != DONE)
                return;
        s = g_new0(Stream, 1);
        s->path = g_strdup(read_path(reply));
        s->client = c;
        s->fd = read_fd(reply);
        g_ptr_array_add(w->streams, s);
}

static void do_block(World *w, Client *c) {
        (void) world_call(w, c, MANAGER, chance(50) ? "BlockSamplers" : "UnblockSamplers", NULL,
                          NULL);
}

static void do_end_sampler(World *w, Client *c) {
        Stream *s = any_of(w->streams);

        if (s)
                g_ptr_array_remove_fast(w->streams, s);
}

static void do_register(World *w, Client *c) {
        g_autoptr(sd_bus_message) reply = NULL;
        Registered *m;

        if (w->monitors->len >= N_REGISTERED ||
            world_call(w, c, MANAGER, "RegisterMonitor", &reply, "sa{sv}", "a test", 1, "pmus",
                       "as", 1, scarce_pmu(w)) != DONE)
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

static void forget_of(GPtrArray *list, const Client *c, size_t offset) {
        for (guint i = list->len; i-- > 0;)
                if (*(Client **) ((char *) list->pdata[i] + offset) == c)
                        g_ptr_array_remove_index_fast(list, i);
}

/* Its leases belong to this process, and stay. */
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
                        world_join(w, i);
                }
}

void world_act(World *w) {
        static const struct {
                void (*act)(World *w, Client *c);
                int weight;
        } acts[] = {
                { do_hold, 12 },  { do_release, 5 },     { do_drop, 6 },    { do_open, 12 },
                { do_read, 12 },  { do_switch, 8 },      { do_persist, 3 }, { do_close, 6 },
                { do_sample, 6 }, { do_end_sampler, 3 }, { do_block, 4 },   { do_register, 3 },
                { do_write, 10 }, { do_end_monitor, 2 }, { do_leave, 2 },   { do_attach, 4 },
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
        world_answer_yields(w);
}
