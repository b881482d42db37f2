/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "own.h"

#include <stdio.h>

static OwnMonitor *own_of(const Yielder *y) {
        return container_of(y, OwnMonitor, yielder);
}

static void own_monitor_changed(OwnMonitor *m) {
        if (m->changed)
                m->changed(m->userdata);
}

static int own_monitor_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        OwnMonitor *m = own_of(y);

        group_yield(m->group);
        own_monitor_changed(m);
        return 0;
}

static void own_monitor_resume(Yielder *y) {
        OwnMonitor *m = own_of(y);

        (void) group_resume(m->group, NULL); /* a failure is in group->error, and tried again */
        own_monitor_changed(m);
}

static void own_monitor_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = getpid();
        (void) snprintf(buffer, size, "perfallocd, monitor %s", own_of(y)->group->events[0].name);
}

static const YielderOps own_ops = {
        .yield = own_monitor_yield,
        .resume = own_monitor_resume,
        .describe = own_monitor_describe,
};

int own_monitor_new(Roster *roster, Group *group, const Scope *scope, uint32_t priority,
                    PlanClass yields_to, uint64_t seq, OwnMonitor **ret) {
        OwnMonitor *m = calloc(1, sizeof(OwnMonitor));
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
                                         .use = (unsigned) group->n_events };
        r = roster_enroll(roster, &m->yielder, &yielded);
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

OwnMonitor *own_monitor_free(OwnMonitor *m) {
        if (!m)
                return NULL;
        if (m->yielder.roster)
                roster_dismiss(m->yielder.roster, &m->yielder);
        group_free(m->group);
        free(m);
        return NULL;
}

bool own_monitor_retry(OwnMonitor *m) {
        if (m->yielder.state == YIELDER_COUNTING && (m->group->error != 0 || m->group->yielded) &&
            group_mend(m->group, NULL) == 0)
                own_monitor_changed(m);
        return m->group->error == 0;
}
