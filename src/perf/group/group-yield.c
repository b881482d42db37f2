/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-yield.h"

#include <sys/ioctl.h>

#include "perf/group/group-open.h"
#include "perf/group/group-pinned.h"
#include "perf/group/group-read.h"
#include "perf/group/group-start.h"
#include "perf/group/switch.h"

void group_yield(Group *g) {
        g->error = 0;
        if (g->yielded)
                return;
        group_leave_dropped(g);
        if (g->wanted)
                group_gate_quickly(g, PERF_EVENT_IOC_DISABLE);
        if (group_closes_to_yield(g))
                group_fold(g);
        g->yielded = true;
}

int group_resume(Group *g, Refusal *why) {
        int r = 0;

        if (!g->yielded)
                return 0;
        if (group_closes_to_yield(g)) {
                for (size_t i = 0; i < g->n_targets; i++)
                        if (g->targets[i].guarded && !g->targets[i].pending)
                                g->targets[i].pending = g;
                r = group_reopen(g, why);
                if (r != 0) {
                        g->error = r > 0 ? refusal_errno(r) : -r;
                        return r;
                }
        }
        g->error = 0;
        g->yielded = false;
        if (g->wanted)
                group_gate_quickly(g, PERF_EVENT_IOC_ENABLE);
        return 0;
}

/* ---- by CPU ---- */

static void group_note_yielded(Group *g) {
        g->yielded = g->n_parts > 0;
        for (size_t part = 0; part < g->n_parts; part++)
                g->yielded &= g->parts[part].yielded;
        if (g->yielded)
                g->error = 0;
}

static void part_yield(Group *g, size_t part) {
        if (g->wanted)
                group_part_ioctl(g, part, PERF_EVENT_IOC_DISABLE);
        if (group_closes_to_yield(g))
                group_fold_part(g, part);
        g->parts[part].yielded = true;
}

void group_yield_cpus(Group *g, const CpuSet *cpus) {
        group_leave_dropped(g);
        switches_gather();
        for (size_t part = 0; part < g->n_parts; part++)
                if (!g->parts[part].yielded && cpuset_has(cpus, (unsigned) g->parts[part].cpu))
                        part_yield(g, part);
        switches_settle();
        group_note_yielded(g);
}

bool group_yields_beyond(const Group *g, const CpuSet *cpus) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].yielded && !cpuset_has(cpus, (unsigned) g->parts[part].cpu))
                        return true;
        return false;
}

static void group_unyield(Group *g, const CpuSet *except) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (!cpuset_has(except, (unsigned) g->parts[part].cpu))
                        g->parts[part].yielded = false;
        g->yielded = false;
}

void groups_reopen_ahead(Group *const *groups, const CpuSet *const *except, size_t n) {
        for (size_t i = 0; i < n; i++)
                group_unyield(groups[i], except[i]);
        groups_open_some(groups, n);
}

int group_resume_cpus(Group *g, const CpuSet *except, Refusal *why) {
        int r;

        group_unyield(g, except);
        r = group_open_each(g, why);
        g->error = r > 0 ? refusal_errno(r) : -r;
        if (g->wanted)
                group_gate_quickly(g, PERF_EVENT_IOC_ENABLE);
        group_note_yielded(g);
        return r;
}

int group_mend(Group *g, Refusal *why) {
        int r;

        if (g->yielded)
                return group_resume(g, why);
        r = group_open(g, why);
        g->error = r > 0 ? refusal_errno(r) : -r;
        if (r == 0 && g->wanted)
                group_gate_quickly(g, PERF_EVENT_IOC_ENABLE);
        return r;
}
