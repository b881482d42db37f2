/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-signals.h"

#include "service/auth/redaction.h"

/* Signals that are sent at once, and the pause after them. A client that has opened a thousand
 * counters reads them next. Without the pause that call, and its reply on the bus, would wait for
 * all these signals. */
#define ANNOUNCE_AT_ONCE    16
#define ANNOUNCE_PAUSE_USEC USEC_PER_MSEC

static void counter_announce(Counter *c) {
        Counters *counters = c->set->counters;
        unsigned changes = c->changes;
        char *names[] = { NULL, NULL, NULL };
        size_t n = 0;

        c->changes = 0;
        if (!c->announced) {
                c->announced = true;
                redaction_emit_added(counters->context, c->object.path);
                return;
        }
        if (changes & COUNTER_CHANGED_STATE)
                names[n++] = (char *) "State";
        if (changes & COUNTER_CHANGED_PERSISTENT)
                names[n++] = (char *) "Persistent";
        (void) sd_bus_emit_properties_changed_strv(counters->context->bus, c->object.path,
                                                   PERFALLOC_COUNTER_INTERFACE, names);
}

/* Signals changes in slices, so that a thousand counters that yield delay neither the grant nor
 * other calls. */
static int counters_announce(sd_event_source *source, uint64_t usec, void *userdata) {
        Counters *counters = userdata;
        Counter *c;

        for (int i = 0; i < ANNOUNCE_AT_ONCE && (c = TAILQ_FIRST(&counters->changed)); i++) {
                TAILQ_REMOVE(&counters->changed, c, changed);
                c->queued = false;
                counter_announce(c);
        }
        if (TAILQ_EMPTY(&counters->changed))
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time_relative(source, ANNOUNCE_PAUSE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void counter_changed(Counter *c, unsigned changes) {
        Counters *counters = c->set->counters;

        c->changes |= changes;
        if (c->queued)
                return;
        if (TAILQ_EMPTY(&counters->changed)) {
                (void) sd_event_source_set_time(counters->announce, 0); /* at once */
                (void) sd_event_source_set_enabled(counters->announce, SD_EVENT_ONESHOT);
        }
        TAILQ_INSERT_TAIL(&counters->changed, c, changed);
        c->queued = true;
}

void counter_set_changed(CounterSet *set) {
        Counter *c;

        LIST_FOREACH (c, &set->members, members)
                counter_changed(c, COUNTER_CHANGED_STATE);
        if (set->group->error != 0)
                counters_retry_soon(set->counters);
}

int counter_signals_init(Counters *counters) {
        int r;

        TAILQ_INIT(&counters->changed);
        r = sd_event_add_time(counters->context->event, &counters->announce, CLOCK_MONOTONIC, 0, 1,
                              counters_announce, counters);
        if (r < 0)
                return r;
        (void) sd_event_source_set_priority(counters->announce, SD_EVENT_PRIORITY_IDLE);
        return sd_event_source_set_enabled(counters->announce, SD_EVENT_OFF);
}
