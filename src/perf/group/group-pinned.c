/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-pinned.h"

#include <sys/ioctl.h>

#include "core/clock.h"
#include "perf/group/group-open.h"
#include "perf/group/group-read.h"

#define UNPIN_AT_ONCE 64u /* events */

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

static void part_close_pinned(Group *g, size_t part, uint64_t now) {
        GroupPart *p = &g->parts[part];

        if (p->dropped_nsec != 0) {
                part_add_missed(g, part, MAX(now - p->dropped_nsec, UINT64_C(1)));
                p->dropped_nsec = 0;
        }
        group_fold_part(g, part);
}

static void parts_unpin(Group *g, size_t part, size_t end) {
        uint64_t now = now_nsec(CLOCK_MONOTONIC);
        int r;

        for (size_t i = part; i < end; i++)
                part_close_pinned(g, i, now);
        r = group_open_each(g, NULL);
        if (r != 0)
                g->error = r > 0 ? refusal_errno(r) : -r;
        for (size_t i = part; i < end && g->wanted; i++)
                if (group_part_is_open(g, i))
                        group_part_ioctl(g, i, PERF_EVENT_IOC_ENABLE);
}

int group_unpin(Group *g, size_t *next, uint64_t until_usec) {
        size_t step = MAX(UNPIN_AT_ONCE / g->n_events, (size_t) 1);

        g->unpinning = true;
        while (*next < g->n_parts) {
                size_t end = MIN(*next + step, g->n_parts);

                parts_unpin(g, *next, end);
                *next = end;
                if (now_usec(CLOCK_MONOTONIC) >= until_usec && *next < g->n_parts)
                        return 0;
        }
        g->pinned = g->unpinning = false;
        return 1;
}
