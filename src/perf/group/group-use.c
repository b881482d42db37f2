/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-use.h"

#include "perf/pmu/counter-use.h"

/* The event as that PMU counts it; NULL: it does not. */
static const Event *event_of_pmu(const Event *e, unsigned pmu) {
        for (size_t unit = 0; unit < event_units(e); unit++)
                if (event_on(e, unit)->pmu->index == pmu)
                        return event_on(e, unit);
        return NULL;
}

static CounterUse group_use_of(const Group *g, unsigned pmu) {
        CounterUse sum = {};

        for (size_t i = 0; i < g->n_events; i++) {
                const Event *e = event_of_pmu(&g->events[i], pmu);
                CounterUse one;

                if (!e)
                        continue;
                (void) counter_use_measure(e->pmu, &e->attr, &one);
                counter_use_add(&sum, &one);
        }
        return sum;
}

int group_uses(const Group *g, const Scope *scope, CounterUse **ret) {
        CounterUse *uses = calloc(MAX(scope->n_parts, 1u), sizeof(CounterUse));

        if (!uses)
                return -ENOMEM;
        for (size_t i = 0; i < scope->n_parts; i++)
                uses[i] = group_use_of(g, scope->parts[i].pmu);
        *ret = uses;
        return 0;
}
