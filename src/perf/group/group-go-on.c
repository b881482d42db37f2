/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/group/group-save.h"

#include "perf/group/group-part.h"

/* A group that was loaded, and the world that went on without it. */

void group_go_on(Group *g) {
        bool counts = g->wanted && !g->yielded;

        /* what was dropped is enabled again by this alone, which minds the time */
        (void) group_revive(g);
        for (size_t part = 0; part < g->n_parts; part++)
                if (group_part_is_pending(g, part))
                        group_part_ioctl(g, part, PERF_EVENT_IOC_DISABLE);
        group_gate_all(g, counts ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE);
}

void group_follow_cpus(Group *g, const CpuSet *online) {
        for (size_t part = 0; part < g->n_parts; part++) {
                const GroupPart *p = &g->parts[part];

                if (p->cpu < 0)
                        continue;
                if (!cpuset_has(online, (unsigned) p->cpu))
                        group_cpu_leave(g, (unsigned) p->cpu);
                else if (p->ended)
                        (void) group_cpu_join(g, (unsigned) p->cpu, NULL);
        }
}
