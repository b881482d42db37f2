/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-census.h"

#include "perf/group/group-use.h"
#include "perf/pmu/event-order.h"

/* Measured once: a PMU's counters do not change. For want of memory it is one general counter. */
static CounterUse counter_set_use(CounterSet *set, const Pmu *pmu) {
        size_t part = (size_t) (scope_find(&set->scope, pmu->index) - set->scope.parts);

        if (set->yielder)
                return set->yielder->uses[part];
        if (!set->uses && group_uses(set->group, &set->scope, &set->uses) < 0)
                return (CounterUse){ .takes.general = 1 };
        return set->uses[part];
}

uint64_t counter_set_order(const CounterSet *set) {
        const Group *g = set->group;
        uint64_t oldest = UINT64_MAX;

        for (size_t part = 0; part < g->n_parts; part++)
                if (group_part_is_open(g, part))
                        oldest = MIN(oldest, event_order(group_slot(g, part, 0)->fd));
        return oldest == UINT64_MAX ? 0 : oldest;
}

static bool group_part_has(const Group *g, size_t part, const Pmu *pmu) {
        for (size_t event = 0; event < g->n_events; event++)
                if (group_part_event(g, part, event)->pmu == pmu)
                        return true;
        return false;
}

static bool part_counts(const Group *g, size_t part, const Pmu *pmu, unsigned cpu) {
        const GroupPart *p = &g->parts[part];

        return group_part_has(g, part, pmu) && (g->scope == GROUP_PROCESS || p->cpu == (int) cpu) &&
               group_part_is_open(g, part) && !group_part_is_yielded(g, part) &&
               p->dropped_nsec == 0;
}

/* A part that counts there; n_parts: none does. Looked for first where the part of that CPU is when
 * the group has one on every CPU: each of hundreds of CPUs is asked for. */
static size_t set_counting_part(const CounterSet *set, const Pmu *pmu, unsigned cpu) {
        const Group *g = set->group;

        if (!scope_has(&set->scope, pmu->index, cpu))
                return g->n_parts;
        for (size_t i = 0; i < g->n_parts; i++) {
                size_t part = (cpu + i) % g->n_parts;

                if (part_counts(g, part, pmu, cpu))
                        return part;
        }
        return g->n_parts;
}

static void set_count(CounterSet *set, const Pmu *pmu, size_t part, HoldCount f, void *userdata) {
        const Group *g = set->group;
        const HoldCounted c = {
                .uid = set->uid,
                .pid = set->peer ? set->peer->pid : 0,
                .monitor = set->yielder,
                .order = event_order(group_slot(g, part, 0)->fd),
                .surely = g->scope == GROUP_CPU,
                .use = counter_set_use(set, pmu),
                .n_events = (unsigned) g->n_events,
        };

        f(userdata, &c);
}

/* On a PMU that reserves slots, what is open takes one, stopped or not. */
static bool set_takes_counters(const CounterSet *set) {
        return set->group->wanted || group_closes_to_yield(set->group);
}

/* On one CPU one thread runs at a time: a single part tells for all of a process. */
void counters_census(Counters *counters, const Pmu *pmu, unsigned cpu, HoldCount f,
                     void *userdata) {
        CounterSet *set;

        LIST_FOREACH (set, &counters->sets, sets) {
                size_t part = set_takes_counters(set) ? set_counting_part(set, pmu, cpu) : SIZE_MAX;

                if (part < set->group->n_parts)
                        set_count(set, pmu, part, f, userdata);
        }
}

/* Whether it takes something of that, and not only other counters of the PMU. */
static bool set_takes(CounterSet *set, const Pmu *pmu, Shape missing) {
        CounterUse use = counter_set_use(set, pmu);

        return use.takes.fixed & missing.fixed ||
               (missing.general > 0 && counter_use_general(&use, missing.fixed) > 0);
}

void counters_standing(Counters *counters, const Pmu *pmu, unsigned cpu, Shape missing,
                       void (*f)(void *userdata, const CounterSet *set), void *userdata) {
        CounterSet *set;

        LIST_FOREACH (set, &counters->sets, sets)
                if (set_takes_counters(set) &&
                    set_counting_part(set, pmu, cpu) < set->group->n_parts &&
                    set_takes(set, pmu, missing))
                        f(userdata, set);
}
