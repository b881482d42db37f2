/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-yielder.h"

#include <stdio.h>

#include "perf/pmu/counter-use.h"

static CounterYielder *own_of(const Yielder *y) {
        return container_of(y, CounterYielder, yielder);
}

static void counter_yielder_changed(CounterYielder *m) {
        if (m->changed)
                m->changed(m->userdata);
}

static int counter_yielder_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        CounterYielder *m = own_of(y);

        group_yield(m->group);
        counter_yielder_changed(m);
        return 0;
}

static void counter_yielder_resume(Yielder *y) {
        CounterYielder *m = own_of(y);

        (void) group_resume(m->group, NULL); /* a failure is in group->error, and tried again */
        counter_yielder_changed(m);
}

static void counter_yielder_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = getpid();
        (void) snprintf(buffer, size, "perfallocd, monitor %s", own_of(y)->group->events[0].name);
}

static const YielderOps own_ops = {
        .yield = counter_yielder_yield,
        .resume = counter_yielder_resume,
        .describe = counter_yielder_describe,
};

/* An event that cannot be tried now is taken for one that takes a general counter. */
static CounterUse group_use(const Group *g) {
        CounterUse sum = {};

        for (size_t i = 0; i < g->n_events; i++) {
                CounterUse one;

                (void) counter_use_measure(g->events[i].pmu, &g->events[i].attr, &one);
                counter_use_add(&sum, &one);
        }
        return sum;
}

int counter_yielder_new(Yielders *roster, Group *group, const Scope *scope, uint32_t priority,
                        PlanClass yields_to, uint64_t seq, CounterYielder **ret) {
        CounterYielder *m = calloc(1, sizeof(CounterYielder));
        bool yielded;
        int r;

        if (!m) {
                group_free(group);
                return -ENOMEM;
        }
        m->group = group;
        m->yielder.ops = &own_ops;
        m->yielder.plan = (PlanMonitor){ .scope = scope,
                                         .priority = priority,
                                         .klass = yields_to,
                                         .seq = seq,
                                         .use = group_use(group) };
        r = yielders_enroll(roster, &m->yielder, &yielded);
        if (r < 0) {
                group_free(group);
                free(m);
                return r;
        }
        if (yielded)
                group_yield(group);
        *ret = m;
        return 0;
}

CounterYielder *counter_yielder_free(CounterYielder *m) {
        if (!m)
                return NULL;
        if (m->yielder.roster)
                yielders_dismiss(m->yielder.roster, &m->yielder);
        group_free(m->group);
        free(m);
        return NULL;
}

bool counter_yielder_retry(CounterYielder *m) {
        if (m->yielder.state == YIELDER_COUNTING && (m->group->error != 0 || m->group->yielded) &&
            group_mend(m->group, NULL) == 0)
                counter_yielder_changed(m);
        return m->group->error == 0;
}
