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

static void part_note_dropped(Group *g, size_t part, uint64_t now) {
        if (g->parts[part].dropped_nsec != 0 || !group_part_is_dropped(g, part))
                return;
        g->parts[part].dropped_nsec = now;
        g->drops_changed = true;
}

void group_note_dropped(Group *g) {
        uint64_t now = g->pinned ? now_nsec(CLOCK_MONOTONIC) : 0;

        for (size_t part = 0; part < g->n_parts && g->pinned; part++)
                if (!group_slot(g, part, 0)->told)
                        part_note_dropped(g, part, now);
}

static void part_revive(Group *g, size_t part, uint64_t now) {
        part_note_dropped(g, part, now);
        if (g->parts[part].dropped_nsec == 0)
                return;
        if (group_part_is_dropped(g, part))
                group_part_ioctl(g, part, PERF_EVENT_IOC_ENABLE);
        if (group_part_is_dropped(g, part))
                return;
        group_end_dropped(g, part, now);
        g->drops_changed = true;
}

void group_enable_dropped(Group *g) {
        uint64_t now = g->pinned ? now_nsec(CLOCK_MONOTONIC) : 0;

        for (size_t part = 0; part < g->n_parts && g->pinned; part++)
                part_revive(g, part, now);
}

bool group_revive(Group *g) {
        bool changed;

        group_enable_dropped(g);
        changed = g->drops_changed;
        g->drops_changed = false;
        return changed;
}

void group_leave_dropped(Group *g) {
        uint64_t now = g->pinned ? now_nsec(CLOCK_MONOTONIC) : 0;

        for (size_t part = 0; part < g->n_parts && g->pinned; part++) {
                part_note_dropped(g, part, now);
                group_end_dropped(g, part, now);
        }
}

static void parts_unpin(Group *g, size_t part, size_t end) {
        int r;

        for (size_t i = part; i < end; i++)
                group_fold_part(g, i);
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
