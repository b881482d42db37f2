/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

#include <inttypes.h>

static const char *const users[N_CLIENTS] = { "root", "root", "alice", "alice" };

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

void world_join(World *w, size_t i) {
        w->clients[i] = client_new(users[i]);
}

World world_new(void) {
        World w = {
                .root = client_new("root"),
                .holds = g_ptr_array_new_with_free_func(held_free),
                .counters = g_ptr_array_new_with_free_func(counted_free),
                .streams = g_ptr_array_new_with_free_func(stream_free),
                .monitors = g_ptr_array_new_with_free_func(registered_free),
        };

        for (size_t i = 0; i < N_CLIENTS; i++)
                world_join(&w, i);
        return w;
}

void world_end(World *w) {
        for (guint i = w->holds->len; i-- > 0;) {
                const Held *h = w->holds->pdata[i];

                if (h->lease < 0) /* unless it has just ended by itself */
                        (void) world_call(w, w->root, h->path, HOLD, "Release", NULL, NULL);
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
                world_join(w, i);
        }
        world_check_nothing_is_left(w);
}

void world_done(World *w) {
        g_ptr_array_unref(w->holds);
        g_ptr_array_unref(w->counters);
        g_ptr_array_unref(w->streams);
        g_ptr_array_unref(w->monitors);
        for (size_t i = 0; i < N_CLIENTS; i++)
                client_free(w->clients[i]);
        client_free(w->root);
}

/* ---- calls that may be cut off ---- */

static bool is_one_of(const char *name, const char *const *names) {
        for (; *names; names++)
                if (strcmp(name, *names) == 0)
                        return true;
        return false;
}

Outcome world_send(World *w, Client *c, sd_bus_message *m, sd_bus_message **ret) {
        /* NoReply is the bus's error for a service that has ended. An activation fails when the
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
        if (is_one_of(error.name, lost) ||
            (w->crowded && strcmp(error.name, SD_BUS_ERROR_LIMITS_EXCEEDED) == 0)) {
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

Outcome world_call(World *w, Client *c, const char *path, const char *interface, const char *member,
                   sd_bus_message **ret, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, path, interface, member), reply = NULL;
        Outcome outcome;
        va_list ap;

        if (types) {
                va_start(ap, types);
                g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
                va_end(ap);
        }
        outcome = world_send(w, c, m, &reply);
        if (ret)
                *ret = g_steal_pointer(&reply);
        return outcome;
}

sd_bus_message *world_ask(World *w, Client *c, const char *path, const char *interface,
                          const char *member) {
        sd_bus_message *reply = NULL;

        await(world_call(w, c, path, interface, member, &reply, NULL) == DONE);
        return reply;
}

void counted_look(World *w, Counted *c) {
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t value, enabled;

        if (world_call(w, w->root, c->path, COUNTER, "Read", &reply, NULL) != DONE)
                return;
        g_assert_cmpint(sd_bus_message_read(reply, "tttts", &value, &enabled, NULL, NULL, NULL), >,
                        0);
        if (value < c->value || enabled < c->enabled)
                g_error("%s fell back from %" PRIu64 " (enabled %" PRIu64 ") to %" PRIu64
                        " (enabled %" PRIu64 ")",
                        c->path, c->value, c->enabled, value, enabled);
        c->value = value;
        c->enabled = enabled;
}

void world_answer_yields(World *w) {
        for (size_t i = 0; i < N_CLIENTS; i++) {
                Client *c = w->clients[i];
                sd_bus_message *m;

                while ((m = client_next(c, 0))) {
                        const char *hold;

                        if (sd_bus_message_is_signal(m, MONITOR, "Yield") > 0 &&
                            sd_bus_message_read(m, "ot", &hold, NULL) > 0)
                                (void) world_call(w, c, sd_bus_message_get_path(m), MONITOR,
                                                  "Yielded", NULL, "o", hold);
                        sd_bus_message_unref(m);
                }
        }
}
