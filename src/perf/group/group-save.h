/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A group written down, and made again of that and of its descriptors by a process that comes
 * later. As long as somebody keeps copies of the descriptors the kernel counts on, so base and
 * descriptor together go on where they were.
 *
 * What was written and the descriptors belong together: both of one moment between two operations.
 */

#include "core/pack.h"
#include "perf/group/group.h"

void group_save(const Group *g, Pack *p);

/* Its descriptors, borrowed: the control group's, the targets', then those of the parts that are
 * open. The array is the caller's to free; -ENOMEM. */
int group_save_descriptors(const Group *g, int **ret, size_t *ret_n);

/* Takes the descriptors over, -1 stays in their place; on failure none that it took stays open. It
 * does nothing to them: group_go_on() does. A group that yields by being disabled comes back as one
 * that has not yielded: whoever knows says group_yield(). -EBADMSG: this cannot be a group,
 * -ENODEV: its PMU is gone, -ENOMEM. */
int group_load(const Unpack *u, const PmuTable *pmus, int *fds, size_t n_fds, Group **ret);

/* ---- going on (group-go-on.c) ---- */

/* Has the kernel's events do what the group says, whatever they were doing when it was written
 * down. Not for a group of whose descriptors others have copies: they say what those do. */
void group_go_on(Group *g);

/* Follows the CPUs that came or went since it was written down. Failures are in error, see
 * group_mend(). */
void group_follow_cpus(Group *g, const CpuSet *online);
