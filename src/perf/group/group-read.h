/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a group has counted.
 */

#include "perf/group/group.h"

/* Sums over all parts and the past; the quality is the worst of the parts that were ever enabled.
 * Never fails: with a descriptor that cannot be read the whole is unmeasured. */
void group_read(const Group *g, size_t event, Reading *ret, Quality *ret_quality);
void group_read_part(const Group *g, size_t event, size_t part, Reading *ret, Quality *ret_quality);

/* Value and times start again from 0. */
void group_reset(Group *g, size_t event);

/* Moves what the descriptors of a part, or of all parts, have counted to the bases, and closes
 * them. */
void group_fold_part(Group *g, size_t part);
void group_fold(Group *g);
