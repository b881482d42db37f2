/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/counter/counter.h"

#include "service/counter/counter-store.h"

/* What everybody is told of counters, and when. */

/* Signals sent before the loop looks at other things, and until there are more. Whoever has opened
 * a thousand counters reads them next: his call would wait for a slice of ours, and its answer on
 * the bus behind all that we had sent. */
#define ANNOUNCE_AT_ONCE    16
#define ANNOUNCE_PAUSE_USEC USEC_PER_MSEC

static void counter_announce(Counter *c) {
        Service *s = c->set->service;
        unsigned news = c->news;
        char *names[] = { NULL, NULL, NULL };
        size_t n = 0;

        c->news = 0;
        if (!c->announced) {
                c->announced = true;
                s->broadcasting = true;
                (void) sd_bus_emit_object_added(s->bus, c->path);
                s->broadcasting = false;
                return;
        }
        if (news & COUNTER_CHANGED_STATE)
                names[n++] = (char *) "State";
        if (news & COUNTER_CHANGED_PERSISTENT)
                names[n++] = (char *) "Persistent";
        (void) sd_bus_emit_properties_changed_strv(s->bus, c->path, PERFALLOC_COUNTER_INTERFACE,
                                                   names);
}

/* What happened since the last round is told in slices, so that a thousand counters that yield hold
 * up neither the grant nor anybody's call. */
static int counters_announce(sd_event_source *source, uint64_t usec, void *userdata) {
        Service *s = userdata;
        Counter *c;

        for (int i = 0; i < ANNOUNCE_AT_ONCE && (c = TAILQ_FIRST(&s->changed)); i++) {
                TAILQ_REMOVE(&s->changed, c, changed);
                c->queued = false;
                counter_announce(c);
        }
        if (TAILQ_EMPTY(&s->changed))
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time_relative(source, ANNOUNCE_PAUSE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void counter_changed(Counter *c, unsigned news) {
        Service *s = c->set->service;

        c->news |= news;
        if (c->queued)
                return;
        if (TAILQ_EMPTY(&s->changed)) {
                (void) sd_event_source_set_time(s->announce, 0); /* at once */
                (void) sd_event_source_set_enabled(s->announce, SD_EVENT_ONESHOT);
        }
        TAILQ_INSERT_TAIL(&s->changed, c, changed);
        c->queued = true;
}

void counter_set_changed(CounterSet *set) {
        Counter *c;

        LIST_FOREACH (c, &set->members, members)
                counter_changed(c, COUNTER_CHANGED_STATE);
        if (set->group->error != 0)
                counters_retry_soon(set->service);
}

int counters_tell_init(Service *s) {
        int r;

        TAILQ_INIT(&s->changed);
        r = sd_event_add_time(s->event, &s->announce, CLOCK_MONOTONIC, 0, 1, counters_announce, s);
        if (r < 0)
                return r;
        (void) sd_event_source_set_priority(s->announce, SD_EVENT_PRIORITY_IDLE);
        return sd_event_source_set_enabled(s->announce, SD_EVENT_OFF);
}
