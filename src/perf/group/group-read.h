/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a group has counted.
 */

#include "perf/group/group.h"

/* Reads all events from the kernel, those of a part at one instant. Never fails: the quality of
 * what cannot be read is not-counted. */
void group_refresh(Group *g);

/* What an event had counted then: sums over all parts and the past; the quality is the lowest of
 * the parts that were ever enabled. */
void group_sum(const Group *g, size_t event, Reading *ret);
void group_sum_part(const Group *g, size_t event, size_t part, Reading *ret);

/* Both. */
void group_read(Group *g, size_t event, Reading *ret);

/* Value and times start again from 0. If a client resets the event itself afterwards, by its
 * descriptor, the value starts again from there. */
void group_reset(Group *g, size_t event);

/* If a part's pinned events were found dropped (dropped_nsec), the time since then is enabled and
 * not running, which ends now. */
void group_end_dropped(Group *g, size_t part, uint64_t now_nsec);

/* Moves what the descriptors of a part, or of all parts, have counted to the bases, and closes
 * them. */
void group_fold_part(Group *g, size_t part);
void group_fold(Group *g);

/* Moves what a thread has counted to the past, from its part of unit 0 on; its parts are closed. */
void group_fold_thread(Group *g, size_t part);
