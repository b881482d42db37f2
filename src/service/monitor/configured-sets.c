/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "configured-sets.h"

#include <string.h>

#include "perf/group/group-cpu.h"
#include "perf/group/group-start.h"
#include "perf/group/group-yield.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter.h"
#include "service/util/log.h"

static bool sets_have(const ConfiguredSets *s, const CounterSet *set) {
        for (size_t i = 0; i < s->n; i++)
                if (s->sets[i] == set)
                        return true;
        return false;
}

/* ---- those that count already ---- */

/* The CPUs on which the monitor counts the event. */
static int spec_cpus(const MonitorSpec *spec, const Event *e, CpuSet *ret) {
        _cleanup_(cpuset_done) CpuSet all = CPUSET_NULL;
        int r = event_units_cpus(e, &all);

        return r < 0 ? r
                     : cpuset_intersect(ret, &all,
                                        spec->has_cpus ? &spec->cpus : &spec->pmus->present);
}

static bool set_counts(const CounterSet *set, const Event *events, size_t n) {
        if (set->group->scope != GROUP_CPU || set->group->n_events != n)
                return false;
        for (size_t i = 0; i < n; i++) {
                const Event *a = &set->group->events[i], *b = &events[i];

                if (strcmp(a->name, b->name) != 0 || a->pmu != b->pmu ||
                    memcmp(&a->attr, &b->attr, sizeof(a->attr)) != 0)
                        return false;
        }
        return true;
}

/* *ret stays NULL if there is none. */
static int sets_find(const ConfiguredSets *s, const MonitorSpec *spec, size_t first, size_t n,
                     CounterSet **ret) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_free_ char *list = NULL;
        CounterSet *set;
        int r;

        r = spec_cpus(spec, &spec->events[first], &cpus);
        if (r == 0)
                r = cpuset_format(&cpus, &list);
        if (r < 0)
                return r;
        LIST_FOREACH (set, &s->counters->sets, sets)
                if (set->configured && strcmp(set->name, s->name) == 0 &&
                    strcmp(set->cpus, list) == 0 && set_counts(set, &spec->events[first], n) &&
                    !sets_have(s, set)) {
                        *ret = set;
                        break;
                }
        return 0;
}

static void set_adapt(CounterSet *set, const MonitorSpec *spec) {
        Yielder *y = &set->yielder->yielder;

        if (y->plan.priority == spec->priority && y->plan.klass == spec->yields_to)
                return;
        yielder_rank(y, spec->priority, spec->yields_to);
        counter_set_save(set);
}

/* ---- the others ---- */

static int set_make(const ConfiguredSets *s, const MonitorSpec *spec, size_t first, size_t n,
                    CounterSet **ret, Refusal *why) {
        CounterSetOptions options = {
                .name = s->name,
                .monitor = true,
                .configured = true,
                .priority = spec->priority,
                .yields_to = spec->yields_to,
        };
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_(group_freep) Group *g = NULL;
        Event *events;
        int r;

        r = spec_cpus(spec, &spec->events[first], &cpus);
        if (r == 0)
                r = events_copy(&spec->events[first], n, &events);
        if (r == 0)
                r = group_new(GROUP_CPU, events, n, &g, why);
        if (r == 0)
                r = group_add_cpus(g, &cpus, &s->counters->context->pmus.online);
        if (r != 0)
                return r;
        options.cpus = &cpus;
        return counter_set_new(s->counters, TAKE_PTR(g), &options, ret, why);
}

/* A set that another program's counters leave no room for is opened later. */
static int set_open(CounterSet *set, Refusal *why) {
        Counter *counter;
        int r = 0, error;

        for (size_t i = 0; i < set->group->n_events && r == 0; i++)
                r = counter_new(set, i, &counter);
        if (r < 0)
                return r;
        error = counter_sets_open(&set, 1, why);
        if (error < 0)
                return error;
        set->group->error = error > 0 ? refusal_errno(error) : 0;
        if (error > 0)
                log_plain(LOG_WARNING, "Monitor %s: cannot be opened, and is tried again: %s",
                          set->name, why->text);
        group_start(set->group);
        counter_set_save(set);
        return 0;
}

static int set_new(const ConfiguredSets *s, const MonitorSpec *spec, size_t first, size_t n,
                   CounterSet **ret, Refusal *why) {
        _cleanup_(counter_set_freep) CounterSet *set = NULL;
        int r = set_make(s, spec, first, n, &set, why);

        if (r == 0)
                r = set_open(set, why);
        if (r == 0)
                *ret = TAKE_PTR(set);
        return r;
}

/* found: those that there were before. */
static int sets_fill(ConfiguredSets *s, const MonitorSpec *spec, bool *found, Refusal *why) {
        size_t step = spec->n_events / s->n;
        int r = 0;

        for (size_t i = 0; i < s->n && r == 0; i++) {
                r = sets_find(s, spec, i * step, step, &s->sets[i]);
                found[i] = s->sets[i];
        }
        for (size_t i = 0; i < s->n && r == 0; i++)
                if (!found[i])
                        r = set_new(s, spec, i * step, step, &s->sets[i], why);
        return r;
}

int configured_sets_open(ConfiguredSets *s, const MonitorSpec *spec, Refusal *why) {
        _cleanup_free_ bool *found = calloc(spec->n_events, sizeof(bool));
        int r;

        s->n = spec->group ? 1 : spec->n_events;
        s->sets = calloc(s->n, sizeof(CounterSet *));
        if (!found || !s->sets)
                return -ENOMEM;
        r = sets_fill(s, spec, found, why);
        for (size_t i = 0; i < s->n; i++)
                if (r == 0)
                        set_adapt(s->sets[i], spec);
                else if (!found[i])
                        counter_set_free(s->sets[i]);
        return r < 0 ? r : r > 0 ? r : counters_apply(s->counters);
}

/* ---- until all counts ---- */

static bool is_earlier(const ConfiguredSets *s, const CounterSet *set) {
        return set->configured && strcmp(set->name, s->name) == 0 && !sets_have(s, set);
}

static bool earlier_any(const ConfiguredSets *s) {
        const CounterSet *set;

        LIST_FOREACH (set, &s->counters->sets, sets)
                if (is_earlier(s, set))
                        return true;
        return false;
}

static void earlier_close(const ConfiguredSets *s) {
        Yielders *yielders = &s->counters->context->yielders;
        CounterSet *set, *next;

        yielders_gather(yielders);
        for (set = LIST_FIRST(&s->counters->sets); set; set = next) {
                next = LIST_NEXT(set, sets);
                if (is_earlier(s, set))
                        counter_set_free(set);
        }
        (void) yielders_settle(yielders);
}

/* Closes its events, until it is tried again. */
static void set_park(CounterSet *set) {
        group_yield(set->group);
        set->group->error = EBUSY;
        counter_set_save(set);
}

static bool sets_retry(const ConfiguredSets *s) {
        bool all = true;

        for (size_t i = 0; i < s->n; i++)
                all &= counter_yielder_retry(s->sets[i]->yielder);
        return all;
}

/* Closes the sets of earlier versions for a moment: there may not be counters for both. If others
 * have too many as well, these go on. */
static bool sets_swap(const ConfiguredSets *s) {
        _cleanup_free_ bool *failed = calloc(s->n, sizeof(bool));
        CounterSet *set;

        for (size_t i = 0; i < s->n && failed; i++)
                failed[i] = s->sets[i]->group->error != 0;
        LIST_FOREACH (set, &s->counters->sets, sets)
                if (failed && is_earlier(s, set) && group_closes_to_yield(set->group))
                        set_park(set);
        store_settle(s->counters->context->store);
        if (!failed || sets_retry(s))
                return failed;
        for (size_t i = 0; i < s->n; i++)
                if (failed[i])
                        set_park(s->sets[i]);
        store_settle(s->counters->context->store);
        LIST_FOREACH (set, &s->counters->sets, sets)
                if (is_earlier(s, set) && !counter_yielder_retry(set->yielder))
                        counters_retry_soon(s->counters);
        return false;
}

bool configured_sets_retry(ConfiguredSets *s) {
        bool all = sets_retry(s) || (earlier_any(s) && sets_swap(s));

        if (all)
                earlier_close(s);
        return all;
}

/* ---- end ---- */

void configured_sets_done(ConfiguredSets *s) {
        free(s->sets);
        s->sets = NULL;
        s->n = 0;
}

void configured_sets_close(Counters *counters,
                           bool (*has_gone)(const void *userdata, const char *name),
                           const void *userdata) {
        CounterSet *set, *next;

        yielders_gather(&counters->context->yielders);
        for (set = LIST_FIRST(&counters->sets); set; set = next) {
                next = LIST_NEXT(set, sets);
                if (set->configured && has_gone(userdata, set->name))
                        counter_set_free(set);
        }
        (void) yielders_settle(&counters->context->yielders);
}
