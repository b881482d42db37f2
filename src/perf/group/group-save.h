/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes a group down, and restores it from that and its descriptors in a later run. The kernel
 * counts on while copies of the descriptors are open, so base and descriptor together stay right.
 *
 * The record and the descriptors must be of the same moment, between two operations.
 */

#include "core/pack.h"
#include "perf/group/group.h"

/* What of a group is saved: all but the last targets, if no call has accepted them yet. */
GroupExtent group_extent(const Group *g);

void group_save(const Group *g, Pack *p);

/* Only what is behind from, a group_extent() of before: for a reader, more of what was saved then.
 * That must be the same still (g->same). */
void group_save_more(const Group *g, GroupExtent from, Pack *p);
void group_note_saved(Group *g); /* from now on g->same tells */

/* Its descriptors, borrowed: the cgroup's, then of each target its own and those of its open parts.
 * The caller frees the array. -ENOMEM. */
int group_save_descriptors(const Group *g, GroupExtent from, int **ret, size_t *ret_n);

/* Takes the descriptors over, leaving -1 in their place; on failure it closes those it took. It
 * does nothing else to them: see groups_go_on(). A group that yields without closing comes back as
 * not yielded; the caller calls group_yield() if it must. -EBADMSG: this is no group; -ENODEV: its
 * PMU is gone; -ENOMEM. more: where group_save_more() has written. */
int group_load(const Unpack *u, const Unpack *more, const PmuTable *pmus, int *fds, size_t n_fds,
               Group **ret);
