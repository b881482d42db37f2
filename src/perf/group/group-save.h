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

void group_save(const Group *g, Pack *p);

/* Its descriptors, borrowed: the cgroup's, the targets', then those of the open parts. The caller
 * frees the array. -ENOMEM. */
int group_save_descriptors(const Group *g, int **ret, size_t *ret_n);

/* Takes the descriptors over, leaving -1 in their place; on failure it closes those it took. It
 * does nothing else to them: see groups_go_on(). A group that yields without closing comes back as
 * not yielded; the caller calls group_yield() if it must. -EBADMSG: this is no group; -ENODEV: its
 * PMU is gone; -ENOMEM. */
int group_load(const Unpack *u, const PmuTable *pmus, int *fds, size_t n_fds, Group **ret);
