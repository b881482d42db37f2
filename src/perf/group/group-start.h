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
void group_gate_all(Group *g, unsigned long request);

/* The same while somebody waits for a hold; more of it may have to be repeated later. */
void group_gate_quickly(Group *g, unsigned long request);

/* Reaches what the last start or stop may have missed (gate.h), once it is time for that. Returns
 * when it is to be called again; UINT64_MAX: not any more. */
uint64_t group_gate_again(Group *g, uint64_t now_usec);

/* After group_load(): brings the kernel's events into the state that the groups are in, which costs
 * less than one after the other; the array is sorted anew. Not for a group whose descriptors others
 * have copies of, who decide about that. */
void groups_go_on(Group **groups, size_t n);
