/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-start.h"

#include <sys/ioctl.h>

#include "perf/group/gate.h"
#include "perf/group/group-pinned.h"

static void group_gate(const Group *g, unsigned long request) {
        bool enable = request == PERF_EVENT_IOC_ENABLE;

        for (size_t part = 0; part < g->n_parts; part++)
                if (!enable || !(group_part_is_yielded(g, part) || group_part_is_pending(g, part)))
                        group_part_ioctl(g, part, request);
}

typedef struct Gate {
        const Group *const *groups;
        size_t n;
        unsigned long request;
} Gate;

static void groups_gate(void *userdata) {
        const Gate *gate = userdata;

        for (size_t i = 0; i < gate->n; i++)
                group_gate(gate->groups[i], gate->request);
}

static void groups_gate_all(const Group *const *groups, size_t n, unsigned long request) {
        Gate gate = { groups, n, request };
        bool inherited = false;

        for (size_t i = 0; i < n; i++)
                inherited |= groups[i]->scope == GROUP_PROCESS && !groups[i]->pinned;
        gate_all(inherited, groups_gate, &gate);
}

void group_gate_all(const Group *g, unsigned long request) {
        groups_gate_all(&g, 1, request);
}

void groups_start(Group *const *groups, size_t n) {
        for (size_t i = 0; i < n; i++)
                groups[i]->wanted = true;
        groups_gate_all((const Group *const *) groups, n, PERF_EVENT_IOC_ENABLE);
}

void group_start(Group *g) {
        groups_start(&g, 1);
}

void group_stop(Group *g) {
        g->wanted = false;
        if (!g->yielded)
                group_gate_all(g, PERF_EVENT_IOC_DISABLE);
}

void group_go_on(Group *g) {
        bool counts = g->wanted && !g->yielded;

        /* enables what was dropped, and accounts for the time */
        (void) group_revive(g);
        for (size_t part = 0; part < g->n_parts; part++)
                if (group_part_is_pending(g, part) || g->parts[part].yielded)
                        group_part_ioctl(g, part, PERF_EVENT_IOC_DISABLE);
        group_gate_all(g, counts ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE);
}
