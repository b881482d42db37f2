/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-pinned.h"

#include <sys/ioctl.h>

#include "core/clock.h"

/* What still counts answers ENOSPC: it has more to tell than 0 bytes. */
bool group_part_is_dropped(const Group *g, size_t part) {
        return g->pinned && g->wanted && !group_part_is_yielded(g, part) &&
               group_part_is_open(g, part) && !group_part_is_pending(g, part) &&
               read(group_slot(g, part, 0)->fd, NULL, 0) == 0;
}

bool group_is_dropped(const Group *g) {
        if (!g->pinned)
                return false;
        for (size_t part = 0; part < g->n_parts; part++)
                if (group_part_is_dropped(g, part))
                        return true;
        return false;
}

/* Of a thread, only the time in which it ran should be added. That is unknown, and this its
 * maximum.
 */
static void part_add_missed(const Group *g, size_t part, uint64_t nsec) {
        for (size_t event = 0; event < g->n_events; event++)
                group_slot(g, part, event)->base.enabled += nsec;
}

static bool part_revive(const Group *g, size_t part, uint64_t now) {
        GroupPart *p = &g->parts[part];
        bool was = p->dropped_nsec != 0;

        if (group_part_is_dropped(g, part)) {
                if (!was)
                        p->dropped_nsec = now;
                group_part_ioctl(g, part, PERF_EVENT_IOC_ENABLE);
                if (group_part_is_dropped(g, part))
                        return !was;
        }
        if (p->dropped_nsec != 0) {
                part_add_missed(g, part, MAX(now - p->dropped_nsec, UINT64_C(1)));
                p->dropped_nsec = 0;
        }
        return was;
}

bool group_revive(Group *g) {
        bool changed = false;
        uint64_t now;

        if (!g->pinned)
                return false;
        now = now_nsec(CLOCK_MONOTONIC);
        for (size_t part = 0; part < g->n_parts; part++)
                changed |= part_revive(g, part, now);
        return changed;
}
