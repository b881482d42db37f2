/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-signals.h"

#include <string.h>

#include "service/counter/counter-store.h"
#include "service/util/property.h"

/* Signals that are sent at once, and the pause after them. A client that has opened a thousand
 * counters reads them next. Without the pause that call, and its reply on the bus, would wait for
 * all these signals. */
#define ANNOUNCE_AT_ONCE    16
#define ANNOUNCE_PAUSE_USEC USEC_PER_MSEC

/* Closed counters that may wait. While the loop is never idle the queue must not grow. */
#define BURIED_MAX 8192u

/* The signals by which monitors tell that they yield and resume, again and again. They are always
 * the same, and building one takes several times as long as sending it. */
#define KEPT_MAX 256u

#define counter_tell(c, n, ...)                                                                    \
        properties_changed((c)->set->counters->context->bus, (c)->object.path,                     \
                           PERFALLOC_COUNTER_INTERFACE, n, __VA_ARGS__)

/* NULL: that one is not kept. */
static sd_bus_message **counter_kept_place(Counter *c, const char *state) {
        static const char *const states[COUNTER_KEPT_SIGNALS] = { "counting", "yielded" };

        for (size_t i = 0; c->set->yielder && i < ELEMENTSOF(states); i++)
                if (strcmp(state, states[i]) == 0)
                        return &c->kept[i];
        return NULL;
}

static void counter_forget_kept(Counters *counters, Counter *c) {
        for (size_t i = 0; i < ELEMENTSOF(c->kept); i++) {
                counters->n_kept -= c->kept[i] != NULL;
                c->kept[i] = sd_bus_message_unref(c->kept[i]);
        }
}

/* libsystemd sends a message again that it has sent, with the serial number that it had: nobody
 * replies to a signal. */
static void counter_tell_state(Counter *c, const char *state) {
        Counters *counters = c->set->counters;
        sd_bus_message **kept = counter_kept_place(c, state);

        if (!kept || (!*kept && counters->n_kept >= KEPT_MAX)) {
                counter_tell(c, 1, "State", "s", state);
                return;
        }
        if (!*kept) {
                *kept = properties_changed_new(counters->context->bus, c->object.path,
                                               PERFALLOC_COUNTER_INTERFACE, 1, "State", "s", state);
                counters->n_kept += *kept != NULL;
        }
        if (*kept)
                (void) sd_bus_send(counters->context->bus, *kept, NULL);
}

/* Who was told that it is idle is to hear of the change, from the next run of the service too. */
static void counter_note_idle(Counter *c, bool idle) {
        bool is_new = idle && !c->told_idle;

        c->told_idle = idle;
        if (is_new)
                counter_set_save(c->set);
}

static bool state_is_idle(const char *state) {
        return strcmp(state, "idle") == 0;
}

const char *counter_answer_state(Counter *c) {
        const char *state = counter_state(c);

        if (state_is_idle(state))
                counter_note_idle(c, true);
        else if (c->told_idle)
                counter_changed(c, COUNTER_CHANGED_STATE);
        return state;
}

static const char *counter_signal_state(Counter *c) {
        const char *state = counter_state(c);

        counter_note_idle(c, state_is_idle(state));
        return state;
}

static void counter_tell_changes(Counter *c) {
        unsigned changes = c->changes;
        int persistent = c->set->persistent;

        c->changes = 0;
        if (!c->announced) {
                c->announced = true;
                object_signal_added(&c->object, &c->set->counters->objects,
                                    c->set->counters->context->bus);
        } else if (changes == COUNTER_CHANGED_STATE)
                counter_tell_state(c, counter_signal_state(c));
        else if (changes == COUNTER_CHANGED_PERSISTENT)
                counter_tell(c, 1, "Persistent", "b", persistent);
        else
                counter_tell(c, 2, "State", "s", counter_signal_state(c), "Persistent", "b",
                             persistent);
}

static void counters_tell_one(Counters *counters) {
        Counter *c = TAILQ_FIRST(&counters->changed);

        TAILQ_REMOVE(&counters->changed, c, changed);
        c->queued = false;
        if (c->set) {
                counter_tell_changes(c);
                return;
        }
        counters->n_buried--;
        object_node_signal_removed(&counters->objects.node, counters->context->bus, c->object.path);
        free(c->object.path);
        free(c);
}

bool counters_tell(void *objects) {
        Counters *counters = container_of(objects, Counters, objects);

        for (int i = 0; i < ANNOUNCE_AT_ONCE && !TAILQ_EMPTY(&counters->changed); i++)
                counters_tell_one(counters);
        return !TAILQ_EMPTY(&counters->changed);
}

/* Signals changes in slices, so that a thousand counters that yield delay neither the grant nor
 * other calls. */
static int counters_announce(sd_event_source *source, uint64_t usec, void *userdata) {
        Counters *counters = userdata;

        if (!counters->objects.node.frozen && !counters_tell(&counters->objects))
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time_relative(source, ANNOUNCE_PAUSE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void counter_queue(Counters *counters, Counter *c) {
        if (TAILQ_EMPTY(&counters->changed)) {
                (void) sd_event_source_set_time(counters->announce, 0); /* at once */
                (void) sd_event_source_set_enabled(counters->announce, SD_EVENT_ONESHOT);
        }
        TAILQ_INSERT_TAIL(&counters->changed, c, changed);
        c->queued = true;
}

void counter_bury(Counter *c) {
        Counters *counters = c->set->counters;

        if (c->queued)
                TAILQ_REMOVE(&counters->changed, c, changed);
        counter_forget_kept(counters, c);
        c->object.path = object_leave_path(&c->object, &counters->objects);
        if (!c->announced) {
                free(c->object.path);
                free(c);
                return;
        }
        c->set = NULL;
        counters->n_buried++;
        counter_queue(counters, c);
        while (counters->n_buried > BURIED_MAX && !counters->objects.node.frozen)
                counters_tell_one(counters);
}

void counter_changed(Counter *c, unsigned changes) {
        Counters *counters = c->set->counters;

        c->changes |= changes;
        if (!c->queued)
                counter_queue(counters, c);
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
