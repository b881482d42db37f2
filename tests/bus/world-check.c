/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

#include <inttypes.h>
#include <perfalloc/sample.h>
#include <stdio.h>
#include <sys/socket.h>

#define STORED_MAX 64 /* queues and logs, for the few objects that are here */
#define SAMPLE_MAX PERFALLOC_SAMPLE_SIZE(4)

static bool has_failed(int lease) {
        struct pollfd p = { .fd = lease };

        return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

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
                world_ask(w, w->root, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                          "GetManagedObjects");
        GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                 (GDestroyNotify) g_hash_table_unref);
        const char *path = NULL;

        while (objects_next(m, &path)) {
                GHashTable *properties =
                        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

                sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
                while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
                        sd_bus_message_skip(m, "s");
                        read_properties(m, properties);
                        sd_bus_message_exit_container(m);
                }
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

/* A hold that was not granted yet may have ended by itself, because something did not yield in
 * time. */
static bool hold_may_be_over(const Held *h, GHashTable *properties) {
        return h->unsure || !properties ||
               (!h->granted && !is(properties, "Result", "lease-closed"));
}

/* False: it has ended, which is allowed. */
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
        /* one that was not granted may have ended by itself since */
        if (h->granted && h->lease >= 0 && has_failed(h->lease))
                g_error("%s is %s, but its lease has failed", h->path,
                        text_of(properties, "State"));
        return true;
}

static uint64_t id_of(const char *path) {
        return g_ascii_strtoull(strrchr(path, '/') + 1, NULL, 10);
}

/* No hold has overtaken another: in each queue the oldest hold has the counters, or none has. */
static void check_queue(World *w, GHashTable *seen) {
        uint64_t oldest = UINT64_MAX;

        for (guint i = 0; i < w->holds->len; i++) {
                const Held *h = w->holds->pdata[i];

                if (h->alone)
                        oldest = MIN(oldest, id_of(h->path));
        }
        for (guint i = 0; i < w->holds->len; i++) {
                const Held *h = w->holds->pdata[i];
                GHashTable *properties = g_hash_table_lookup(seen, h->path);

                if (h->alone && id_of(h->path) != oldest && !is(properties, "State", "queued"))
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
        for (guint i = 0; i < w->holds->len; i++) {
                const Held *h = w->holds->pdata[i];

                if (h->granted && h->all)
                        return true;
        }
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
                counted_look(w, c);
        }
}

/* Ticks go on where they were, and what was not sent is reported as missed. */
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

/* Removes what a call made that was cut off: only root can remove objects without lease, stream and
 * client. */
static void clear_unknown(World *w, const char *path, GHashTable *properties) {
        if (!w->lost)
                return;
        if (g_str_has_prefix(path, PERFALLOC_OBJECT_PATH "/counter/"))
                (void) world_call(w, w->root, path, COUNTER, "Close", NULL, NULL);
        else if (g_str_has_prefix(path, PERFALLOC_OBJECT_PATH "/hold/") &&
                 is(properties, "Unattended", "yes"))
                (void) world_call(w, w->root, path, HOLD, "Release", NULL, NULL);
}

/* Whether every object was made by a client that is still there. */
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
        world_answer_yields(w);
        return !*ret;
}

void world_check_nothing_is_left(World *w) {
        g_autofree char *path = NULL;
        gint64 end = g_get_monotonic_time() + AWAIT_SEC * G_USEC_PER_SEC;

        while (!nothing_is_left(w, &path)) {
                if (g_get_monotonic_time() > end)
                        g_error("%s should not be there", path);
                g_usleep(1000);
        }
        w->lost = false;
}

/* Monitors have their breakpoints again, or none while these are held on all CPUs. */
static bool monitors_are_right(World *w) {
        g_autoptr(GHashTable) seen = look(w);

        world_answer_yields(w);
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

void world_check(World *w) {
        g_autoptr(GHashTable) seen = look(w);

        world_answer_yields(w);
        check_holds(w, seen);
        check_counters(w, seen);
        check_streams(w, seen);
        check_monitors(w, seen);
        world_check_nothing_is_left(w);
        await(monitors_are_right(w));
        g_assert_cmpint(service_number("stored"), <, STORED_MAX);
}
