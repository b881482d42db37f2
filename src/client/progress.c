/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "progress.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/bus.h"
#include "client/say.h"

#define MOMENT_USEC (250 * USEC_PER_MSEC)
#define SOON_USEC   (100 * USEC_PER_MSEC) /* for signals that come together */
#define NAMED_MAX   4u                    /* so many holders are named, the others are counted */

void progress_say(Progress *p, const char *text) {
        if (p->said && strcmp(p->said, text) == 0)
                return;
        free(p->said);
        p->said = strdup(text);
        say_note("%s", text);
}

static void progress_look_in(Progress *p, uint64_t usec) {
        if (sd_event_source_set_time_relative(p->timer, usec) >= 0)
                (void) sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

static int progress_disturbed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Progress *p = userdata;
        int enabled;

        if (sd_event_source_get_enabled(p->timer, &enabled) >= 0 && enabled == SD_EVENT_OFF)
                progress_look_in(p, SOON_USEC);
        return 0;
}

/* ---- the queue ---- */

typedef struct Queue {
        const HoldView *own;
        FILE *f;
        unsigned n;
} Queue;

static void queue_add(Queue *q, const HoldView *other) {
        _cleanup_free_ char *words = NULL;

        if (!hold_view_precedes(other, q->own) || q->n++ >= NAMED_MAX)
                return;
        words = hold_view_holder(other);
        fprintf(q->f, "%s%s", q->n > 1 ? "; " : ", behind ", words ?: "?");
}

/* One object of GetManagedObjects: a path, and an a{sa{sv}} of its interfaces. */
static int queue_read_object(Queue *q, sd_bus_message *m) {
        const char *path, *interface;
        int r = sd_bus_message_read_basic(m, 'o', &path);
        uint64_t id;

        if (r < 0)
                return r;
        id = hold_view_id(path);
        if (id == 0)
                return sd_bus_message_skip(m, "a{sa{sv}}");
        r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
                _cleanup_(hold_view_done) HoldView v = HOLD_VIEW_NULL;
                bool is_hold;

                r = sd_bus_message_read_basic(m, 's', &interface);
                if (r < 0)
                        return r;
                is_hold = strcmp(interface, PERFALLOC_HOLD_INTERFACE) == 0;
                r = is_hold ? hold_view_read(&v, m) : sd_bus_message_skip(m, "a{sv}");
                if (r < 0)
                        return r;
                v.id = id;
                if (is_hold)
                        queue_add(q, &v);
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int queue_read(Queue *q, sd_bus_message *m) {
        int r = sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}")) > 0) {
                r = queue_read_object(q, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r;
}

static int progress_queue(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        Progress *p = userdata;
        Queue q = { .own = &p->view };
        size_t size;

        p->call = sd_bus_slot_unref(p->call);
        q.f = open_memstream(&text, &size);
        if (!q.f)
                return 0;
        fprintf(q.f, "waiting in the queue at place %" PRIu32, p->view.queue_position);
        /* the holders ahead cannot always be told, its place in the queue can */
        if (!sd_bus_message_is_method_error(m, NULL))
                (void) queue_read(&q, m);
        if (q.n > NAMED_MAX)
                fprintf(q.f, "; and %u more", q.n - NAMED_MAX);
        if (fclose(q.f) == 0)
                progress_say(p, text);
        return 0;
}

/* ---- the hold ---- */

static void progress_say_yielding(Progress *p) {
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "waiting for monitors to give way%s%s", p->view.obstacles ? ": " : "",
                     p->view.obstacles ?: "") < 0)
                text = NULL;
        else
                progress_say(p, text);
}

static int progress_viewed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Progress *p = userdata;
        HoldView v;

        p->call = sd_bus_slot_unref(p->call);
        if (bus_lost_service(m))
                progress_look_in(p, MOMENT_USEC);
        if (sd_bus_message_is_method_error(m, NULL) || hold_view_read(&v, m) < 0)
                return 0;
        hold_view_done(&p->view);
        p->view = v;
        p->view.id = hold_view_id(p->path);
        if (hold_view_is(&v, "yielding"))
                progress_say_yielding(p);
        else if (hold_view_is(&v, "queued"))
                (void) sd_bus_call_method_async(p->bus, &p->call, PERFALLOC_BUS_NAME,
                                                PERFALLOC_OBJECT_PATH,
                                                "org.freedesktop.DBus.ObjectManager",
                                                "GetManagedObjects", progress_queue, p, NULL);
        return 0;
}

/* The place in the queue changes when a hold ends, which is signalled, as State is. */
static void progress_subscribe(Progress *p) {
        p->subscribed = true;
        (void) sd_bus_match_signal_async(p->bus, &p->ended, PERFALLOC_BUS_NAME,
                                         PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                         "HoldEnded", progress_disturbed, NULL, p);
        (void) sd_bus_match_signal_async(p->bus, &p->changed, PERFALLOC_BUS_NAME, p->path,
                                         "org.freedesktop.DBus.Properties", "PropertiesChanged",
                                         progress_disturbed, NULL, p);
}

static int progress_look(sd_event_source *source, uint64_t usec, void *userdata) {
        Progress *p = userdata;

        if (!p->path) {
                if (!p->said)
                        progress_say(p, "waiting for perfallocd and polkit to answer");
                return 0;
        }
        if (!p->subscribed)
                progress_subscribe(p);
        p->call = sd_bus_slot_unref(p->call);
        (void) sd_bus_call_method_async(p->bus, &p->call, PERFALLOC_BUS_NAME, p->path,
                                        "org.freedesktop.DBus.Properties", "GetAll",
                                        progress_viewed, p, "s", PERFALLOC_HOLD_INTERFACE);
        return 0;
}

void progress_set_hold(Progress *p, const char *path) {
        p->path = path;
        progress_look_in(p, MOMENT_USEC);
}

int progress_start(Progress *p, sd_bus *bus) {
        p->bus = bus;
        return sd_event_add_time_relative(sd_bus_get_event(bus), &p->timer, CLOCK_MONOTONIC,
                                          MOMENT_USEC, 0, progress_look, p);
}

void progress_stop(Progress *p) {
        p->timer = sd_event_source_disable_unref(p->timer);
        p->ended = sd_bus_slot_unref(p->ended);
        p->changed = sd_bus_slot_unref(p->changed);
        p->call = sd_bus_slot_unref(p->call);
        hold_view_done(&p->view);
        free(p->said);
        *p = PROGRESS_NULL;
}
