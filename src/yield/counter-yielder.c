/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-yielder.h"

#include "perf/group/group-yield.h"

#include <stdio.h>

static CounterYielder *counter_yielder_of(const Yielder *y) {
        return container_of(y, CounterYielder, yielder);
}

static void counter_yielder_changed(CounterYielder *m) {
        if (m->changed)
                m->changed(m->userdata);
}

static int counter_yielder_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        CounterYielder *m = counter_yielder_of(y);

        group_yield(m->group);
        counter_yielder_changed(m);
        return 0;
}

static void counter_yielder_resume(Yielder *y) {
        CounterYielder *m = counter_yielder_of(y);

        (void) group_resume(m->group, NULL); /* a failure is in group->error, and tried again */
        counter_yielder_changed(m);
}

static void counter_yielder_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = getpid();
        (void) snprintf(buffer, size, "perfallocd, monitor %s",
                        counter_yielder_of(y)->group->events[0].name);
}

static const YielderOps counter_yielder_ops = {
        .yield = counter_yielder_yield,
        .resume = counter_yielder_resume,
        .describe = counter_yielder_describe,
};

int counter_yielder_new(Yielders *yielders, Group *group, const Scope *scope, uint32_t priority,
                        PlanClass yields_to, uint64_t seq, CounterYielder **ret) {
        CounterYielder *m = calloc(1, sizeof(CounterYielder));
        bool yielded;
        int r;

        if (!m) {
                group_free(group);
                return -ENOMEM;
        }
        m->group = group;
        m->yielder.ops = &counter_yielder_ops;
        m->yielder.plan = (PlanMonitor){ .scope = scope,
                                         .priority = priority,
                                         .klass = yields_to,
                                         .seq = seq,
                                         .use = (unsigned) group->n_events };
        r = yielders_enroll(yielders, &m->yielder, &yielded);
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
        if (m->yielder.yielders)
                yielders_dismiss(m->yielder.yielders, &m->yielder);
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
