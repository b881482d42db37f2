/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter.h"

#include <string.h>

#include "core/clock.h"
#include "perf/group/group-cpu.h"
#include "perf/group/group-pinned.h"
#include "perf/group/group-read.h"
#include "perf/group/group-yield.h"
#include "service/counter/counter-closing.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter-target.h"
#include "service/counter/counter-unpin.h"
#include "service/counter/counter-user.h"
#include "service/hold/hold-scope.h"
#include "service/pmu/capacity.h"

#define COUNTER_RETRY_USEC USEC_PER_SEC

uint64_t counters_now(Counters *counters) {
        return ++counters->instant;
}

/* Who was told that it is idle hears that it has run. */
static void counter_tell_busy(Counter *c) {
        Reading reading;

        if (!c->told_idle)
                return;
        group_sum(c->set->group, c->event, &reading);
        if (reading.enabled > 0)
                counter_changed(c, COUNTER_CHANGED_STATE);
}

void counter_set_refresh(CounterSet *set, uint64_t instant) {
        Counter *c;

        if (set->instant == instant)
                return;
        set->instant = instant;
        group_refresh(set->group);
        LIST_FOREACH (c, &set->members, members)
                counter_tell_busy(c);
        /* an event that the kernel drops cannot be read any more, by the next run neither */
        if (set->group->pinned) {
                group_note_dropped(set->group);
                counter_set_save(set);
        }
}

void counter_read(Counter *c, uint64_t instant, Reading *ret) {
        counter_set_refresh(c->set, instant);
        group_sum(c->set->group, c->event, ret);
}

static void counter_set_yield_changed(void *userdata) {
        CounterSet *set = userdata;

        /* that a set is only disabled follows from the holds */
        if (group_closes_to_yield(set->group))
                counter_set_save(set);
        counter_set_changed(set);
        counter_set_guard(set);
}

/* False: it is in error, or pinned and may get into error. The kernel does not report that it drops
 * an event. */
static bool counter_set_retry(CounterSet *set) {
        Group *g = set->group;

        if (group_revive(g)) {
                counter_set_save(set);
                counter_set_changed(set);
        }
        if (set->yielder)
                return counter_yielder_retry(set->yielder) && !g->pinned;
        if (g->error != 0 && group_mend(g, NULL) == 0) {
                counter_set_save(set);
                counter_set_changed(set);
        }
        return g->error == 0 && !g->pinned;
}

/* Retries what could not be opened again: another program was faster. */
static int counters_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Counters *counters = userdata;
        bool again = false;
        CounterSet *set;

        store_settle(counters->context->store);
        LIST_FOREACH (set, &counters->sets, sets)
                if (!counter_set_retry(set))
                        again = true;
        if (!again)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time_relative(source, COUNTER_RETRY_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int counters_init(Counters *counters, Context *context, Holds *holds) {
        int r;

        counters->context = context;
        counters->holds = holds;
        LIST_INIT(&counters->sets);
        r = counter_signals_init(counters);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(context->event, &counters->retry, CLOCK_MONOTONIC,
                                       COUNTER_RETRY_USEC, USEC_PER_SEC / 10, counters_retry,
                                       counters);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(counters->retry, SD_EVENT_OFF);
}

static int scope_add_pmu(Scope *scope, const Pmu *pmu, const CpuSet *cpus) {
        _cleanup_(cpuset_done) CpuSet both = CPUSET_NULL;
        int r = cpuset_intersect(&both, cpus ?: &pmu->cpus, &pmu->cpus);

        return r < 0 ? r : scope_add(scope, pmu->index, &both);
}

/* The slots whose counters the group may take. A thread may run anywhere. */
static int counter_scope(const Group *group, const CpuSet *cpus, Scope *ret) {
        _cleanup_(scope_done) Scope scope = SCOPE_NULL;

        for (size_t i = 0; i < group->n_events; i++)
                for (size_t unit = 0; unit < event_units(&group->events[i]); unit++) {
                        int r = scope_add_pmu(&scope, event_on(&group->events[i], unit)->pmu, cpus);

                        if (r < 0)
                                return r;
                }
        *ret = scope;
        scope = SCOPE_NULL;
        return 0;
}

static int counter_set_charge(CounterSet *set, Refusal *why) {
        Quota *quota = &set->context->quota;
        int r;

        r = quota_charge(quota, set->uid, QUOTA_COUNTERS, set->group->n_events,
                         &set->counter_charge, why);
        if (r != 0)
                return r;
        return quota_charge(quota, set->uid, QUOTA_DESCRIPTORS, group_n_descriptors(set->group),
                            &set->descriptor_charge, why);
}

int counters_apply(Counters *counters) {
        if (counters->context->ledger.n_active == 0)
                return 0;
        return yielders_apply(&counters->context->yielders, holds_current(counters->holds),
                              now_usec(CLOCK_MONOTONIC) + HOLD_YIELD_USEC, NULL);
}

/* A monitor counter becomes a yielder before it is opened: it may not take counters that are held.
 */
int counter_set_enroll(CounterSet *set, const CounterSetOptions *o) {
        int r = counter_yielder_new(&set->context->yielders, set->group, &set->scope, o->priority,
                                    o->yields_to, o->seq, &set->yielder);

        if (r < 0) {
                set->group = NULL;
                return r;
        }
        set->yielder->changed = counter_set_yield_changed;
        set->yielder->userdata = set;
        return 0;
}

static int counter_set_describe(CounterSet *set, const CounterSetOptions *o) {
        int r;

        set->name = strdup(o->name ?: "");
        if (!set->name)
                return -ENOMEM;
        if (o->cpus)
                r = cpuset_format(o->cpus, &set->cpus);
        else
                r = (set->cpus = strdup("")) ? 0 : -ENOMEM;
        return r < 0 ? r : counter_scope(set->group, o->cpus, &set->scope);
}

int counter_set_make(Counters *counters, Group *group, const CounterSetOptions *o,
                     CounterSet **ret) {
        CounterSet *set = calloc(1, sizeof(CounterSet));
        int r;

        if (!set) {
                group_free(group);
                return -ENOMEM;
        }
        *set = (CounterSet){ .counters = counters,
                             .context = counters->context,
                             .group = group,
                             .uid = o->uid,
                             .configured = o->configured,
                             .persistent = o->persistent,
                             .peer = o->peer ? peer_ref(o->peer) : NULL };
        LIST_INSERT_HEAD(&counters->sets, set, sets);
        counter_set_note_pinned(set);
        r = counter_set_describe(set, o);
        if (r < 0) {
                counter_set_discard(set);
                return r;
        }
        *ret = set;
        return 0;
}

int counter_set_new(Counters *counters, Group *group, const CounterSetOptions *o, CounterSet **ret,
                    Refusal *why) {
        _cleanup_(counter_set_freep) CounterSet *set = NULL;
        int r = counter_set_make(counters, group, o, &set);

        if (r == 0)
                r = capacities_need(counters->context->capacities);
        if (r == 0 && o->peer)
                r = counter_set_add_user(set, o->peer, why);
        if (r == 0)
                r = counter_set_charge(set, why);
        if (r == 0 && o->monitor) {
                r = counter_set_enroll(set, o);
                /* In a partial hold, others may have to make room for one of higher
                 * priority. */
                if (r == 0)
                        r = counters_apply(counters);
        }
        if (r != 0)
                return r;
        if (group->pinned)
                counters_retry_soon(counters);
        *ret = TAKE_PTR(set);
        return 0;
}

/* Listeners may be removed while others are called. */
static void counter_tell_closed(Counter *c) {
        CounterListener *l;

        while ((l = LIST_FIRST(&c->listeners))) {
                LIST_REMOVE(l, listeners);
                l->closed(l, c);
        }
}

static void counter_free(Counter *c) {
        Counters *counters = c->set->counters;
        Counter **recent = &counters->recent[c->object.id % COUNTERS_RECENT];

        LIST_REMOVE(c, members);
        counter_tell_closed(c);
        if (*recent == c)
                *recent = NULL;
        counter_bury(c);
}

CounterSet *counter_set_discard(CounterSet *set) {
        if (!set)
                return NULL;
        while (!LIST_EMPTY(&set->members)) {
                Counter *c = LIST_FIRST(&set->members);

                c->announced = false; /* no signal: it lives on in the store */
                counter_free(c);
        }
        LIST_REMOVE(set, sets);
        counter_set_drop_pinned(set);
        if (set->ending)
                TAILQ_REMOVE(&set->counters->ending, set, endings);
        reader_job_cancel(set->guard);
        counter_set_drop_users(set);
        if (set->yielder)
                counter_yielder_free(set->yielder);
        else
                group_free(set->group);
        quota_release(&set->counter_charge);
        quota_release(&set->descriptor_charge);
        quota_release(&set->kept_charge);
        scope_done(&set->scope);
        peer_unrefp(&set->peer);
        free(set->uses);
        free(set->name);
        free(set->cpus);
        free(set);
        return NULL;
}

CounterSet *counter_set_free(CounterSet *set) {
        Counters *counters;
        Counter *c;
        bool monitor;

        if (!set)
                return NULL;
        while ((c = LIST_FIRST(&set->members))) {
                /* closing the last one frees the set */
                if (!LIST_NEXT(c, members)) {
                        counter_close(c);
                        return NULL;
                }
                counter_close(c);
        }
        counters = set->counters;
        monitor = set->yielder;
        counter_set_forget(set);
        counter_set_close_later(set);
        counter_set_discard(set);
        /* in a partial hold, another yielder may go on in its place */
        if (monitor)
                (void) counters_apply(counters);
        return NULL;
}

int counter_add(CounterSet *set, size_t event, uint64_t id, Counter **ret) {
        Counters *counters = set->counters;
        Counter *c = calloc(1, sizeof(Counter));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (Counter){ .object.uid = set->uid, .set = set, .event = event };
        r = object_enter(&c->object, &counters->objects, id);
        if (r < 0) {
                free(c);
                return r;
        }
        LIST_INSERT_HEAD(&set->members, c, members);
        counters->recent[id % COUNTERS_RECENT] = c;
        *ret = c;
        return 0;
}

int counter_new(CounterSet *set, size_t event, Counter **ret) {
        Counters *counters = set->counters;
        int r = counter_add(set, event, serial_next(&counters->context->serial, SERIAL_COUNTER),
                            ret);

        if (r < 0)
                return r;
        totals_add(&counters->context->totals, TOTAL_COUNTERS_OPENED, 1);
        counter_changed(*ret, COUNTER_CHANGED_STATE);
        context_touch(counters->context);
        return 0;
}

void counter_close(Counter *c) {
        CounterSet *set = c->set;
        Counters *counters = set->counters;

        counter_free(c);
        if (LIST_EMPTY(&set->members))
                counter_set_free(set);
        else
                counter_set_save(set);
        context_touch(counters->context);
}

void counters_cpu_changed(Counters *counters, unsigned cpu, bool online) {
        CounterSet *set;

        if (online) /* stored copies of its earlier events still take its slots */
                store_settle(counters->context->store);
        LIST_FOREACH (set, &counters->sets, sets) {
                int error = set->group->error;

                if (online)
                        (void) group_cpu_join(set->group, cpu, NULL);
                else {
                        group_cpu_leave(set->group, cpu);
                        group_follow_masks(set->group);
                }
                if (set->group->version != set->kept)
                        counter_set_save(set);
                if (set->group->error != error)
                        counter_set_changed(set);
        }
}

int counters_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                     int (*f)(void *userdata, const CounterSet *set), void *userdata) {
        const CounterSet *set;
        int r = 0;

        LIST_FOREACH (set, &counters->sets, sets) {
                if (r == 0 && !set->yielder && set->uid != uid && set->group->n_parts > 0 &&
                    scope_overlaps(&set->scope, scope))
                        r = f(userdata, set);
        }
        return r;
}

void counters_done(Counters *counters) {
        CounterSet *set;

        while ((set = LIST_FIRST(&counters->sets)))
                if (set->item.store)
                        counter_set_discard(set);
                else {
                        set->unkept = 0; /* the next run is told */
                        counter_set_free(set);
                }
        while (counters_tell(&counters->objects))
                ;
        sd_event_source_disable_unref(counters->announce);
        sd_event_source_disable_unref(counters->retry);
}
