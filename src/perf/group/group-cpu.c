/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-cpu.h"

#include "perf/group/group-open.h"
#include "perf/group/group-read.h"
#include "perf/group/group-start.h"

static const CpuSet *unit_cpus(const Group *g, size_t unit) {
        const Event *e = &g->events[0];

        for (size_t i = 1; i < g->n_events && e->n_others == 0; i++)
                e = &g->events[i];
        return &event_on(e, unit)->pmu->cpus;
}

int group_add_cpus(Group *g, const CpuSet *cpus, const CpuSet *online) {
        size_t n = group_units(g);
        int r = group_grow(g, n * cpuset_count(cpus));

        if (r < 0)
                return r;
        for (size_t unit = 0; unit < n; unit++)
                CPU_FOREACH (cpu, cpus)
                        if (n == 1 || cpuset_has(unit_cpus(g, unit), (unsigned) cpu))
                                group_add_part(g, (GroupPart){ .cpu = cpu,
                                                               .tid = -1,
                                                               .ended = !cpuset_has(online,
                                                                                    (unsigned) cpu),
                                                               .unit = unit });
        return 0;
}

void group_cpu_leave(Group *g, unsigned cpu) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].cpu == (int) cpu && !g->parts[part].ended) {
                        group_fold_part(g, part);
                        g->parts[part].ended = true;
                }
}

int group_cpu_join(Group *g, unsigned cpu, Refusal *why) {
        bool joins = false;
        int r;

        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].cpu == (int) cpu && g->parts[part].ended) {
                        g->parts[part].ended = false;
                        joins = true;
                }
        if (!joins)
                return 0;
        r = group_open_each(g, why);
        g->error = r > 0 ? refusal_errno(r) : -r;
        if (g->wanted)
                group_gate_all(g, PERF_EVENT_IOC_ENABLE);
        return r;
}

static bool unit_has_part(const Group *g, size_t unit, int cpu) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].unit == unit && g->parts[part].cpu == cpu)
                        return true;
        return false;
}

/* A CPU of the PMU that has no part yet; -1: none, or the part is where it should be. */
static int part_new_cpu(const Group *g, const GroupPart *p) {
        const CpuSet *cpus = unit_cpus(g, p->unit);

        if (!p->ended || cpuset_has(cpus, (unsigned) p->cpu))
                return -1;
        CPU_FOREACH (cpu, cpus)
                if (!unit_has_part(g, p->unit, cpu))
                        return cpu;
        return -1;
}

void group_follow_masks(Group *g) {
        for (size_t part = 0; part < g->n_parts && g->scope != GROUP_PROCESS; part++) {
                int cpu = part_new_cpu(g, &g->parts[part]);

                if (cpu < 0)
                        continue;
                g->parts[part].cpu = cpu;
                (void) group_cpu_join(g, (unsigned) cpu, NULL);
        }
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
        group_follow_masks(g);
}
