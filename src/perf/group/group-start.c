/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-start.h"

#include <sys/ioctl.h>

#include "core/clock.h"
#include "perf/group/gate.h"
#include "perf/group/group-pinned.h"
#include "perf/group/switch.h"

static void group_gate(const Group *g, unsigned long request) {
        bool enable = request == PERF_EVENT_IOC_ENABLE;

        for (size_t part = 0; part < g->n_parts; part++)
                if (!enable || !(group_part_is_yielded(g, part) || group_part_is_pending(g, part)))
                        group_part_ioctl(g, part, request);
}

typedef struct Gate {
        Group *const *groups;
        size_t n;
        unsigned long request;
} Gate;

static void groups_gate(void *userdata) {
        const Gate *gate = userdata;

        switches_gather();
        for (size_t i = 0; i < gate->n; i++)
                group_gate(gate->groups[i], gate->request);
        switches_settle();
}

static bool group_is_inherited(const Group *g) {
        return g->scope == GROUP_PROCESS && !g->pinned;
}

/* Whether all that could create what inherits from it rests. Descendants could, and are not known.
 */
static bool group_rests(const Group *g, Rest *rest) {
        bool rests = true;

        for (size_t i = 0; i < g->n_targets && rests; i++)
                rests = !g->targets[i].descendants && rest_add(rest, g->targets[i].pid);
        return rests;
}

/* look: whether all rest, which takes longer than a second round of a few events. */
static void groups_gate_all(Group *const *groups, size_t n, unsigned long request, bool look) {
        _cleanup_(rest_done) Rest rest = REST_NULL;
        Gate gate = { groups, n, request };
        uint64_t again = now_usec(CLOCK_MONOTONIC) + GATE_AGAIN_USEC;
        bool inherited = false, rests = look, reached;

        for (size_t i = 0; i < n; i++) {
                if (request == PERF_EVENT_IOC_ENABLE)
                        group_enable_dropped(groups[i]);
                if (!group_is_inherited(groups[i]))
                        continue;
                inherited = true;
                rests = rests && group_rests(groups[i], &rest);
        }
        reached = gate_all(inherited, inherited && rests ? &rest : NULL, groups_gate, &gate);
        for (size_t i = 0; i < n; i++)
                if (group_is_inherited(groups[i])) {
                        groups[i]->gates_due = reached ? 0 : GATE_AGAIN_TIMES;
                        groups[i]->gates_usec = again;
                }
        if (!reached)
                gate_again();
}

uint64_t group_gate_again(Group *g, uint64_t now) {
        if (g->gates_due > 0 && now >= g->gates_usec) {
                group_gate(g, g->wanted && !g->yielded ? PERF_EVENT_IOC_ENABLE
                                                       : PERF_EVENT_IOC_DISABLE);
                g->gates_due--;
                g->gates_usec = now + (GATE_AGAIN_USEC << (GATE_AGAIN_TIMES - g->gates_due));
        }
        return g->gates_due > 0 ? g->gates_usec : UINT64_MAX;
}

void group_gate_all(Group *g, unsigned long request) {
        groups_gate_all(&g, 1, request, true);
}

void group_gate_quickly(Group *g, unsigned long request) {
        groups_gate_all(&g, 1, request, false);
}

void groups_start(Group *const *groups, size_t n) {
        for (size_t i = 0; i < n; i++)
                groups[i]->wanted = true;
        groups_gate_all(groups, n, PERF_EVENT_IOC_ENABLE, true);
}

void group_start(Group *g) {
        groups_start(&g, 1);
}

void group_stop(Group *g) {
        group_leave_dropped(g);
        g->wanted = false;
        if (!g->yielded)
                group_gate_all(g, PERF_EVENT_IOC_DISABLE);
}

static void group_stop_parts(const Group *g) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (group_part_is_pending(g, part) || g->parts[part].yielded)
                        group_part_ioctl(g, part, PERF_EVENT_IOC_DISABLE);
}

void groups_go_on(Group **groups, size_t n) {
        size_t n_counting = 0;

        for (size_t i = 0; i < n; i++) {
                Group *g = groups[i];

                /* enables what was dropped, and accounts for the time */
                group_enable_dropped(g);
                group_stop_parts(g);
                if (!g->wanted || g->yielded)
                        continue;
                groups[i] = groups[n_counting];
                groups[n_counting++] = g;
        }
        groups_gate_all(groups, n_counting, PERF_EVENT_IOC_ENABLE, true);
        groups_gate_all(groups + n_counting, n - n_counting, PERF_EVENT_IOC_DISABLE, true);
}
