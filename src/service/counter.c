/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/hold.h"

#include "service/attach-call.h"
#include "service/sampled.h"

#define COUNTER_RETRY_USEC USEC_PER_SEC
#define ANNOUNCE_AT_ONCE   64 /* signals sent before the loop looks at other things */

static int compare_counters(const void *a, const void *b) {
        const Counter *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

Counter *counter_find(Service *s, uint64_t id) {
        Counter key = { .id = id };
        Counter **found = tfind(&key, &s->counters, compare_counters);

        return found ? *found : NULL;
}

const char *counter_state(const Counter *c) {
        const Group *g = c->set->group;

        if (g->error != 0)
                return "error";
        if (g->yielded)
                return "yielded";
        if (group_is_dropped(g))
                return "error";
        return g->wanted ? "counting" : "stopped";
}

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
static int counters_announce(sd_event_source *source, void *userdata) {
        Service *s = userdata;
        Counter *c;

        for (int i = 0; i < ANNOUNCE_AT_ONCE && (c = TAILQ_FIRST(&s->changed)); i++) {
                TAILQ_REMOVE(&s->changed, c, changed);
                c->queued = false;
                counter_announce(c);
        }
        return sd_event_source_set_enabled(source,
                                           TAILQ_EMPTY(&s->changed) ? SD_EVENT_OFF : SD_EVENT_ON);
}

void counter_changed(Counter *c, unsigned news) {
        Service *s = c->set->service;

        c->news |= news;
        if (c->queued)
                return;
        TAILQ_INSERT_TAIL(&s->changed, c, changed);
        c->queued = true;
        (void) sd_event_source_set_enabled(s->announce, SD_EVENT_ON);
}

void counter_set_changed(CounterSet *set) {
        Counter *c;

        LIST_FOREACH (c, &set->members, members)
                counter_changed(c, COUNTER_CHANGED_STATE);
        if (set->group->error != 0)
                (void) sd_event_source_set_enabled(set->service->retry, SD_EVENT_ON);
}

static void counter_set_yield_changed(void *userdata) {
        counter_set_changed(userdata);
        counter_set_guard(userdata);
}

/* False: it is still in error, or is pinned and may come to be: nobody tells when the kernel drops
 * it. */
static bool counter_set_retry(CounterSet *set) {
        Group *g = set->group;

        if (group_revive(g))
                counter_set_changed(set);
        if (set->monitor)
                return own_monitor_retry(set->monitor) && !g->pinned;
        if (g->error != 0 && group_mend(g, NULL) == 0)
                counter_set_changed(set);
        return g->error == 0 && !g->pinned;
}

/* What could not be opened again when it should: somebody outside the service was faster. */
static int counters_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Service *s = userdata;
        bool again = false;
        CounterSet *set;

        LIST_FOREACH (set, &s->sets, sets)
                if (!counter_set_retry(set))
                        again = true;
        if (!again)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time_relative(source, COUNTER_RETRY_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int counters_init(Service *s) {
        int r;

        TAILQ_INIT(&s->changed);
        LIST_INIT(&s->sets);
        r = sd_event_add_defer(s->event, &s->announce, counters_announce, s);
        if (r < 0)
                return r;
        (void) sd_event_source_set_priority(s->announce, SD_EVENT_PRIORITY_IDLE);
        r = sd_event_source_set_enabled(s->announce, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(s->event, &s->retry, CLOCK_MONOTONIC, COUNTER_RETRY_USEC,
                                       USEC_PER_SEC / 10, counters_retry, s);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(s->retry, SD_EVENT_OFF);
}

/* The cells that the group may take counters of: a thread may run anywhere. */
static int counter_scope(const Group *group, const CpuSet *cpus, Scope *ret) {
        _cleanup_(scope_done) Scope scope = SCOPE_NULL;

        for (size_t i = 0; i < group->n_events; i++) {
                const Pmu *pmu = group->events[i].pmu;
                int r = scope_add(&scope, pmu->index, cpus ?: &pmu->cpus);

                if (r < 0)
                        return r;
        }
        *ret = scope;
        scope = SCOPE_NULL;
        return 0;
}

static int counter_set_charge(CounterSet *set, Refusal *why) {
        Quota *quota = &set->service->quota;
        int r;

        r = quota_charge(quota, set->uid, QUOTA_COUNTERS, set->group->n_events, &set->counters,
                         why);
        if (r != 0)
                return r;
        return quota_charge(quota, set->uid, QUOTA_DESCRIPTORS, group_n_descriptors(set->group),
                            &set->descriptors, why);
}

/* Somebody of the roster came or went while counters are held. */
static int counters_apply(Service *s) {
        if (s->ledger.n_active == 0)
                return 0;
        return roster_apply(&s->roster, holds_current(s),
                            now_usec(CLOCK_MONOTONIC) + HOLD_YIELD_USEC, NULL);
}

/* A monitor is enrolled before it is opened: while its counters are held it may not take any. */
static int counter_set_enroll(CounterSet *set, const CounterSetOptions *o) {
        int r = own_monitor_new(&set->service->roster, set->group, &set->scope, o->priority,
                                o->yields_to, &set->monitor);

        if (r < 0) {
                set->group = NULL;
                return r;
        }
        set->monitor->changed = counter_set_yield_changed;
        set->monitor->userdata = set;
        /* In a partial hold others may have to make room for one of higher priority. */
        return counters_apply(set->service);
}

int counter_set_new(Service *s, Group *group, const CounterSetOptions *o, CounterSet **ret,
                    Refusal *why) {
        _cleanup_(counter_set_freep) CounterSet *set = calloc(1, sizeof(CounterSet));
        int r;

        if (!set) {
                group_free(group);
                return -ENOMEM;
        }
        *set = (CounterSet){ .service = s,
                             .group = group,
                             .uid = o->uid,
                             .configured = o->configured,
                             .persistent = o->persistent,
                             .peer = o->peer ? peer_ref(o->peer) : NULL };
        LIST_INSERT_HEAD(&s->sets, set, sets);
        r = o->peer ? counter_set_add_user(set, o->peer, false, why) : 0;
        if (r != 0)
                return r;
        set->name = strdup(o->name ?: "");
        if (!set->name)
                return -ENOMEM;
        if (o->cpus)
                r = cpuset_format(o->cpus, &set->cpus);
        else
                r = (set->cpus = strdup("")) ? 0 : -ENOMEM;
        if (r < 0)
                return r;
        r = counter_scope(group, o->cpus, &set->scope);
        if (r < 0)
                return r;
        r = counter_set_charge(set, why);
        if (r != 0)
                return r;
        if (o->monitor) {
                r = counter_set_enroll(set, o);
                if (r < 0)
                        return r;
        }
        if (!group->yielded || !group_closes_to_yield(group)) {
                r = group_open(group, why);
                if (r != 0)
                        return r;
        }
        if (group->pinned)
                (void) sd_event_source_set_enabled(s->retry, SD_EVENT_ON);
        *ret = TAKE_PTR(set);
        return 0;
}

CounterSet *counter_set_free(CounterSet *set) {
        Counter *c;

        if (!set)
                return NULL;
        while ((c = LIST_FIRST(&set->members))) {
                /* the last one would free the set */
                if (!LIST_NEXT(c, members)) {
                        counter_close(c);
                        return NULL;
                }
                counter_close(c);
        }
        LIST_REMOVE(set, sets);
        helper_job_cancel(set->guard);
        counter_set_drop_users(set);
        if (set->monitor) {
                own_monitor_free(set->monitor);
                /* in a partial hold another one may go on in its place */
                (void) counters_apply(set->service);
        } else
                group_free(set->group);
        quota_release(&set->counters);
        quota_release(&set->descriptors);
        scope_done(&set->scope);
        peer_unrefp(&set->peer);
        free(set->name);
        free(set->cpus);
        free(set);
        return NULL;
}

int counter_new(CounterSet *set, size_t event, Counter **ret) {
        Service *s = set->service;
        Counter *c = calloc(1, sizeof(Counter));

        if (!c)
                return -ENOMEM;
        *c = (Counter){ .id = serial_next(&s->serial, SERIAL_COUNTER), .set = set, .event = event };
        if (asprintf(&c->path, PERFALLOC_OBJECT_PATH "/counter/%" PRIu64, c->id) < 0) {
                free(c);
                return -ENOMEM;
        }
        if (!tsearch(c, &s->counters, compare_counters)) {
                free(c->path);
                free(c);
                return -ENOMEM;
        }
        LIST_INSERT_HEAD(&set->members, c, members);
        counter_changed(c, COUNTER_CHANGED_STATE);
        service_touch(s);
        *ret = c;
        return 0;
}

void counter_close(Counter *c) {
        CounterSet *set = c->set;
        Service *s = set->service;

        attach_calls_forget_counter(s, c);
        LIST_REMOVE(c, members);
        if (c->queued)
                TAILQ_REMOVE(&s->changed, c, changed);
        if (c->announced)
                (void) sd_bus_emit_object_removed(s->bus, c->path);
        sampled_forget_counter(c);
        tdelete(c, &s->counters, compare_counters);
        free(c->path);
        free(c);
        if (LIST_EMPTY(&set->members))
                counter_set_free(set);
        service_touch(s);
}

void counters_cpu_changed(Service *s, unsigned cpu, bool online) {
        CounterSet *set;

        LIST_FOREACH (set, &s->sets, sets) {
                int error = set->group->error;

                if (online)
                        (void) group_cpu_join(set->group, cpu, NULL);
                else
                        group_cpu_leave(set->group, cpu);
                if (set->group->error != error)
                        counter_set_changed(set);
        }
}

void counters_forget_peer(Service *s, Peer *peer) {
        CounterSet *set, *next;

        for (set = LIST_FIRST(&s->sets); set; set = next) {
                next = LIST_NEXT(set, sets);
                if (set->peer == peer)
                        peer_unrefp(&set->peer);
                if (counter_set_forget_user(set, peer))
                        counter_set_free(set);
        }
}

int counters_foreign(Service *s, uid_t uid, const Scope *scope,
                     int (*f)(void *userdata, const CounterSet *set), void *userdata) {
        CounterSet *set;

        LIST_FOREACH (set, &s->sets, sets) {
                int r = 0;

                if (!set->monitor && set->uid != uid && set->group->n_parts > 0 &&
                    scope_overlaps(&set->scope, scope))
                        r = f(userdata, set);
                if (r != 0)
                        return r;
        }
        return 0;
}

void counters_done(Service *s) {
        while (!LIST_EMPTY(&s->sets))
                counter_set_free(LIST_FIRST(&s->sets));
}
