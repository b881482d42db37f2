/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Starts and stops groups.
 */

#include "perf/group/group.h"

/* Sets what the owner wants; takes effect at once unless the group has yielded. */
void group_start(Group *g);
void group_stop(Group *g);

/* Starts several groups, which costs less than one after the other. */
void groups_start(Group *const *groups, size_t n);

/* PERF_EVENT_IOC_ENABLE (pending parts excepted) or DISABLE, of all parts and what inherited from
 * them. */
void group_gate_all(const Group *g, unsigned long request);

/* After group_load(): brings the kernel's events into the state that the groups are in, which costs
 * less than one after the other; the array is sorted anew. Not for a group whose descriptors others
 * have copies of, who decide about that. */
void groups_go_on(Group **groups, size_t n);
