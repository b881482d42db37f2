/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-unpin.h"

#include "core/clock.h"
#include "perf/group/group-pinned.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"
#include "service/hold/hold-scope.h"

static const Pmu *part_pmu(const CounterSet *set, size_t part) {
        return &set->context->pmus.pmus[set->scope.parts[part].pmu];
}

/* Beside an event of a core PMU, the others of its group (task-clock) need no hold. */
static bool counter_set_is_held(const CounterSet *set) {
        bool core = false;

        for (size_t i = 0; i < set->scope.n_parts; i++)
                core |= part_pmu(set, i)->kind == PMU_CORE;
        for (size_t i = 0; i < set->scope.n_parts; i++) {
                const Pmu *pmu = part_pmu(set, i);

                if ((!core || pmu->kind == PMU_CORE) &&
                    !holds_cover(set->counters->holds, set->uid, pmu, &set->scope.parts[i].cpus))
                        return false;
        }
        return true;
}

/* False: there is no time for the rest. */
static bool counter_set_unpin(CounterSet *set, uint64_t until) {
        Group *g = set->group;
        int error = g->error;

        if (!group_unpin(g, &set->unpinned, until))
                return false;
        counter_set_drop_pinned(set);
        counter_set_save(set);
        if (g->error != error)
                counter_set_changed(set);
        if (g->error != 0)
                counters_retry_soon(set->counters);
        return true;
}

/* What is begun is brought to its end, also if the user holds the counters again. */
static void counters_unpin_slice(void *userdata) {
        Counters *counters = userdata;
        uint64_t until = now_usec(CLOCK_MONOTONIC) + SLICE_USEC;
        CounterSet *set, *next;

        for (set = LIST_FIRST(&counters->pinned); set; set = next) {
                next = LIST_NEXT(set, pinned);
                if (set->ending || set->handed_out ||
                    (!set->group->unpinning && counter_set_is_held(set)))
                        continue;
                if (!counter_set_unpin(set, until) || now_usec(CLOCK_MONOTONIC) >= until) {
                        turn_wait(&counters->unpin);
                        return;
                }
        }
}

void counters_unpin_init(Counters *counters, Turns *turns) {
        LIST_INIT(&counters->pinned);
        turn_init(&counters->unpin, turns, counters_unpin_slice, counters);
}

void counters_unpin_done(Counters *counters) {
        turn_done(&counters->unpin);
}

void counter_set_note_pinned(CounterSet *set) {
        if (!set->group->pinned || set->group->scope == GROUP_PROCESS)
                return;
        set->on_pinned_list = true;
        LIST_INSERT_HEAD(&set->counters->pinned, set, pinned);
}

void counter_set_drop_pinned(CounterSet *set) {
        if (!set->on_pinned_list)
                return;
        set->on_pinned_list = false;
        LIST_REMOVE(set, pinned);
}

void counters_unpin_soon(Counters *counters) {
        if (!LIST_EMPTY(&counters->pinned))
                turn_wait(&counters->unpin);
}
