/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-yielder.h"

#include <stdio.h>

#include "perf/group/group-use.h"
#include "perf/group/group-yield.h"

#define GROUPS_AT_ONCE 8u /* as many as are prepared at once */
#define EVENTS_AT_ONCE 64u

static CounterYielder *counter_yielder_of(const Yielder *y) {
        return container_of(y, CounterYielder, yielder);
}

static void counter_yielder_changed(CounterYielder *m) {
        if (m->changed)
                m->changed(m->userdata);
}

static void counter_yielder_start(Yielder *y) {
        CounterYielder *m = counter_yielder_of(y);

        if (y->plan.by_cpu)
                group_yield_cpus(m->group, &y->plan.where);
        else
                group_yield(m->group);
}

static int counter_yielder_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        counter_yielder_start(y);
        counter_yielder_changed(counter_yielder_of(y));
        return 0;
}

static void counter_yielder_resume(Yielder *y) {
        CounterYielder *m = counter_yielder_of(y);

        /* a failure is in group->error, and tried again */
        if (y->plan.by_cpu)
                (void) group_resume_cpus(m->group, &y->plan.where, NULL);
        else
                (void) group_resume(m->group, NULL);
        counter_yielder_changed(m);
}

/* Opening takes a message to the opener and its answer, for one event as for many. */
static size_t counter_yielder_prepare(Yielder *const *yielders, size_t n) {
        size_t n_groups = 0, n_events = 0, i = 0;
        Group *groups[GROUPS_AT_ONCE];
        const CpuSet *except[GROUPS_AT_ONCE];

        for (; i < MIN(n, GROUPS_AT_ONCE); i++) {
                Group *g = counter_yielder_of(yielders[i])->group;

                n_events += g->n_parts * g->n_events;
                if (!group_closes_to_yield(g) || (i > 0 && n_events > EVENTS_AT_ONCE))
                        break;
                if (!yielders[i]->plan.by_cpu)
                        continue;
                groups[n_groups] = g;
                except[n_groups++] = &yielders[i]->plan.where;
        }
        if (n_groups > 1)
                groups_reopen_ahead(groups, except, n_groups);
        return MAX(i, 1u); /* nothing of the others has to be opened: each may end a slice */
}

static void counter_yielder_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = getpid();
        (void) snprintf(buffer, size, "perfallocd, monitor %s",
                        counter_yielder_of(y)->group->events[0].name);
}

static const YielderOps counter_yielder_ops = {
        .sliced = true,
        .start = counter_yielder_start,
        .yield = counter_yielder_yield,
        .resume = counter_yielder_resume,
        .prepare = counter_yielder_prepare,
        .describe = counter_yielder_describe,
};

int counter_yielder_new(Yielders *yielders, Group *group, const Scope *scope, uint32_t priority,
                        PlanClass yields_to, uint64_t seq, CounterYielder **ret) {
        CounterYielder *m = calloc(1, sizeof(CounterYielder));
        int r;

        if (!m) {
                group_free(group);
                return -ENOMEM;
        }
        m->group = group;
        r = group_uses(group, scope, &m->uses);
        m->yielder.ops = &counter_yielder_ops;
        m->yielder.plan = (PlanMonitor){ .scope = scope,
                                         .by_cpu = group->scope != GROUP_PROCESS,
                                         .priority = priority,
                                         .klass = yields_to,
                                         .seq = seq,
                                         .uses = m->uses };
        if (r >= 0)
                r = yielders_enroll(yielders, &m->yielder);
        if (r < 0) {
                counter_yielder_free(m);
                return r;
        }
        *ret = m;
        return 0;
}

CounterYielder *counter_yielder_free(CounterYielder *m) {
        if (!m)
                return NULL;
        m->group = group_free(m->group); /* a hold may go on as soon as nobody waits for it */
        if (m->yielder.yielders)
                yielders_dismiss(m->yielder.yielders, &m->yielder);
        free(m->uses);
        free(m);
        return NULL;
}

/* 1: there is nothing to mend. */
static int counter_yielder_mend(CounterYielder *m) {
        const Yielder *y = &m->yielder;

        if (y->plan.by_cpu)
                return m->group->error == 0 && !group_yields_beyond(m->group, &y->plan.where)
                               ? 1
                               : group_resume_cpus(m->group, &y->plan.where, NULL);
        if (y->state != YIELDER_COUNTING || (m->group->error == 0 && !m->group->yielded))
                return 1;
        return group_mend(m->group, NULL);
}

bool counter_yielder_retry(CounterYielder *m) {
        if (!yielder_is_due(&m->yielder) && counter_yielder_mend(m) == 0)
                counter_yielder_changed(m);
        return m->group->error == 0;
}
