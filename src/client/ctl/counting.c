/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counting.h"

#include <perfalloc/dbus.h>

#include "client/bus.h"
#include "client/say.h"
#include "core/clock.h"
#include "core/timespan.h"

#define READ_USEC USEC_PER_SEC
#define AWAY_USEC (3 * USEC_PER_SEC) /* a restart takes less */

static int counting_arm(const Counting *n, uint64_t usec) {
        int r = sd_event_source_set_time_relative(n->timer, usec);

        return r < 0 ? r : sd_event_source_set_enabled(n->timer, SD_EVENT_ONESHOT);
}

/* ---- lost ---- */

static int counting_print_last(const Counting *n) {
        int r = sd_bus_message_rewind(n->last, true);

        return r < 0 ? r : readings_print_answer(n->c, n->readings, &n->objects, n->last, n->f);
}

static int counting_lose(Counting *n, const char *why) {
        _cleanup_free_ char *span = NULL;

        if (n->lost)
                return 0;
        n->lost = true;
        (void) sd_event_source_set_enabled(n->timer, SD_EVENT_OFF);
        if (!n->last) {
                say_error("%s: the counters have ended before they were read", why);
                return 0;
        }
        span = timespan_format(now_usec(CLOCK_MONOTONIC) - n->last_usec);
        say_error("%s: the counters have ended; they were last read %s ago", why,
                  span ?: "shortly");
        return counting_print_last(n);
}

/* ---- reading ---- */

/* Without an answer it is looked again after the next reading. */
static int on_targets(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counting *n = userdata;

        n->look = sd_bus_slot_unref(n->look);
        if (sd_bus_message_is_method_error(m, NULL) ||
            sd_bus_message_enter_container(m, 'v', "au") < 0 ||
            sd_bus_message_enter_container(m, 'a', "u") < 0)
                return 0;
        n->ended = sd_bus_message_at_end(m, false) > 0;
        return 0;
}

static int counting_look_once(Counting *n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        if (!n->looks || n->look)
                return 0;
        r = ctl_call_new(n->c, &m, n->readings->paths[0], "org.freedesktop.DBus.Properties", "Get");
        if (r >= 0)
                r = sd_bus_message_append(m, "ss", PERFALLOC_COUNTER_INTERFACE, "Targets");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        return r < 0 ? r : sd_bus_call_async(n->c->bus, &n->look, m, on_targets, n, UINT64_MAX);
}

static int counting_keep(Counting *n, sd_bus_message *answer) {
        int r;

        sd_bus_message_unref(n->last);
        n->last = sd_bus_message_ref(answer);
        n->last_usec = now_usec(CLOCK_MONOTONIC);
        r = counting_look_once(n);
        return r < 0 ? r : counting_arm(n, READ_USEC);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counting *n = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);

        n->call = sd_bus_slot_unref(n->call);
        if (!e)
                return counting_keep(n, m);
        if (sd_bus_is_open(n->c->bus) <= 0)
                return 0; /* on_disconnected() is next */
        /* its name is about to have no owner, or another one */
        if (bus_lost_service(m) || bus_missed_service(m))
                return counting_arm(n, AWAY_USEC);
        return counting_lose(n, e->message ?: e->name);
}

static int counting_read(Counting *n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        if (n->call || n->lost)
                return 0;
        r = readings_call_new(n->c, n->readings, &m);
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        return r < 0 ? r : sd_bus_call_async(n->c->bus, &n->call, m, on_answer, n, UINT64_MAX);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Counting *n = userdata;

        return n->away ? counting_lose(n, "perfallocd has stopped") : counting_read(n);
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counting *n = userdata;
        const char *owner;
        int r = sd_bus_message_read(m, "sss", NULL, NULL, &owner);

        if (r < 0 || n->lost)
                return r;
        n->away = !*owner;
        return n->away ? counting_arm(n, AWAY_USEC) : counting_read(n);
}

/* The bus has stopped, or ssh has lost the host. sd-bus tells this itself. */
static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counting *n = userdata;

        return counting_lose(n, "the connection to the bus was lost");
}

/* ---- begin and end ---- */

static int counting_watch(Counting *n) {
        sd_bus *bus = n->c->bus;
        int r = sd_bus_add_match_async(bus, &n->owner,
                                       "type='signal',sender='org.freedesktop.DBus',"
                                       "interface='org.freedesktop.DBus',"
                                       "member='NameOwnerChanged',arg0='" PERFALLOC_BUS_NAME "'",
                                       on_owner, NULL, n);

        return r < 0 ? r
                     : sd_bus_match_signal_async(
                               bus, &n->disconnected, "org.freedesktop.DBus.Local",
                               "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                               "Disconnected", on_disconnected, NULL, n);
}

int counting_start(Counting *n, Ctl *c, const Readings *readings, FILE *f, Refusal *why) {
        int r;

        *n = (Counting){ .c = c, .readings = readings, .f = f };
        r = ctl_fetch_all(c, &n->objects, why);
        if (r != 0)
                return r;
        r = counting_watch(n);
        if (r >= 0)
                r = sd_event_add_time_relative(c->event, &n->timer, CLOCK_MONOTONIC, READ_USEC, 0,
                                               on_timer, n);
        return MIN(r, 0);
}

void counting_done(Counting *n) {
        sd_bus_slot_unref(n->owner);
        sd_bus_slot_unref(n->disconnected);
        sd_bus_slot_unref(n->call);
        sd_bus_slot_unref(n->look);
        sd_event_source_disable_unref(n->timer);
        sd_bus_message_unref(n->last);
        objects_done(&n->objects);
        *n = COUNTING_NULL;
}

void counting_look(Counting *n) {
        n->looks = true;
}

int counting_settle(const Counting *n) {
        int r = 0;

        while (r >= 0 && n->away && !n->lost)
                r = sd_event_run(n->c->event, UINT64_MAX);
        return r < 0 ? r : n->lost ? CTL_E_FAILED : 0;
}
