/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The parts of a group, for the files that make up the group (group.h) alone.
 */

#include <sys/ioctl.h>

#include "perf/group/group.h"

static inline GroupSlot *group_slot(const Group *g, size_t part, size_t event) {
        return &g->slots[part * g->n_events + event];
}

static inline bool group_part_is_open(const Group *g, size_t part) {
        return group_slot(g, part, 0)->fd >= 0;
}

static inline bool group_part_is_pending(const Group *g, size_t part) {
        return g->scope == GROUP_PROCESS && g->targets[g->parts[part].target].pending;
}

/* To the leader, which gates its siblings. */
static inline void group_part_ioctl(const Group *g, size_t part, unsigned long request) {
        if (group_part_is_open(g, part))
                (void) ioctl(group_slot(g, part, 0)->fd, request, 0);
}

/* perf_event_open(2): the end of file is how the kernel says that it has dropped a pinned event;
 * its siblings go on to be read. */
bool group_part_is_dropped(const Group *g, size_t part);

/* Room for more parts; -ENOMEM. */
int group_grow(Group *g, size_t n_more);
void group_add_part(Group *g, GroupPart part);

void group_close_part(Group *g, size_t part);

/* What the part's descriptors have counted moves to the bases, and they are closed. */
void group_fold_part(Group *g, size_t part);
void group_close(Group *g); /* likewise, all of them */

/* Opens what closing has freed, on the threads that the targets have now; REFUSAL_BUSY: they are
 * made faster than that. */
int group_reopen(Group *g, Refusal *why);

/* Whether its events can be on their PMU all at once, where the kernel says so too late: REFUSAL_*.
 */
int group_check_fit(const Group *g, Refusal *why);

/* PERF_EVENT_IOC_ENABLE (what is pending is left out) or DISABLE, for all parts and who inherited
 * of them. */
void group_gate_all(const Group *g, unsigned long request);
