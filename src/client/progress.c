/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "progress.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/bus.h"
#include "client/hold-words.h"
#include "client/say.h"
#include "core/clock.h"

#define CLOCK_USEC  USEC_PER_SEC
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

/* On a terminal in place, and again in a second, because time passes. */
static void progress_show(Progress *p, const char *lines) {
        if (say_in_place(lines))
                progress_look_in(p, CLOCK_USEC);
        else
                progress_say(p, lines);
}

/* ---- the queue ---- */

/* " for 12s" on a terminal, where it is kept up to date. */
static void print_waiting(const Object *own, bool in_place, FILE *f) {
        uint64_t now = now_usec(CLOCK_REALTIME), since = object_number(own, "RequestTimestamp");
        uint64_t until = object_number(own, "WaitTimestamp");
        char text[HOLD_TIME_MAX];

        fprintf(f, "waiting");
        if (in_place && now > since)
                fprintf(f, " for %" PRIu64 "s", (now - since) / USEC_PER_SEC);
        if (until > 0)
                fprintf(f, " until %s", hold_words_time(until, text));
        fprintf(f, ", place %" PRIu64 " in the queue", object_number(own, "QueuePosition"));
}

static void print_queue(const Progress *p, const Objects *all, bool in_place, FILE *f) {
        unsigned n = 0;

        print_waiting(&p->hold, in_place, f);
        OBJECTS_FOREACH (other, all, PERFALLOC_HOLD_INTERFACE) {
                char command[COMMAND_NAME_MAX] = "";
                _cleanup_free_ char *words = NULL;

                if (!hold_precedes(other, &p->hold) || n++ >= NAMED_MAX)
                        continue;
                if (p->local)
                        (void) hold_words_command(other, command);
                words = hold_words_holder(other, command);
                fprintf(f, "%s%s%s", n > 1 ? ";" : ", behind", in_place ? "\n  " : " ",
                        words ?: "?");
        }
        if (n > NAMED_MAX)
                fprintf(f, "; and %u more", n - NAMED_MAX);
}

static int progress_queue(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_free_ char *text = NULL;
        Progress *p = userdata;
        size_t size;
        FILE *f;

        p->call = sd_bus_slot_unref(p->call);
        f = open_memstream(&text, &size);
        if (!f)
                return 0;
        /* the holders ahead cannot always be told, its place in the queue can */
        if (!sd_bus_message_is_method_error(m, NULL))
                (void) objects_read(&all, m);
        print_queue(p, &all, say_can_replace(), f);
        if (fclose(f) == 0)
                progress_show(p, text);
        return 0;
}

/* ---- the hold ---- */

static void progress_say_yielding(Progress *p) {
        _cleanup_free_ char *text = NULL, *obstacles = hold_words_obstacles(&p->hold);

        if (!obstacles || asprintf(&text, "waiting for monitors to yield%s%s",
                                   *obstacles ? ": " : "", obstacles) < 0)
                text = NULL;
        else
                progress_show(p, text);
}

static int progress_viewed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Progress *p = userdata;
        Object hold;

        p->call = sd_bus_slot_unref(p->call);
        if (bus_lost_service(m))
                progress_look_in(p, MOMENT_USEC);
        if (sd_bus_message_is_method_error(m, NULL) ||
            object_read(&hold, m, p->path, PERFALLOC_HOLD_INTERFACE) < 0)
                return 0;
        object_done(&p->hold);
        p->hold = hold;
        if (object_is(&hold, "State", "yielding"))
                progress_say_yielding(p);
        else if (object_is(&hold, "State", "queued"))
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
                        progress_say(p, "waiting for perfallocd and polkit");
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

int progress_start(Progress *p, sd_bus *bus, bool local) {
        p->bus = bus;
        p->local = local;
        return sd_event_add_time_relative(sd_bus_get_event(bus), &p->timer, CLOCK_MONOTONIC,
                                          MOMENT_USEC, 0, progress_look, p);
}

void progress_stop(Progress *p) {
        say_in_place_end();
        p->timer = sd_event_source_disable_unref(p->timer);
        p->ended = sd_bus_slot_unref(p->ended);
        p->changed = sd_bus_slot_unref(p->changed);
        p->call = sd_bus_slot_unref(p->call);
        object_done(&p->hold);
        free(p->said);
        *p = PROGRESS_NULL;
}
