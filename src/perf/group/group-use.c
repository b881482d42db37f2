/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-use.h"

#include "perf/pmu/counter-use.h"

CounterUse group_use(const Group *g) {
        CounterUse sum = {};

        for (size_t i = 0; i < g->n_events; i++) {
                CounterUse one;

                (void) counter_use_measure(g->events[i].pmu, &g->events[i].attr, &one);
                counter_use_add(&sum, &one);
        }
        return sum;
}
