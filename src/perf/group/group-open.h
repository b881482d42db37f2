/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Opens the events of a group.
 */

#include "perf/group/group.h"

/* Opens, disabled, what is not open. On failure all is as before. Refusals are
 * perf_event_open(2)'s. */
int group_open(Group *g, Refusal *why);

/* The same part by part: what cannot be opened stays closed, and what it failed with first is
 * returned. */
int group_open_each(Group *g, Refusal *why);

/* group_open() of several groups, in as few messages as possible; all or nothing. */
int groups_open(Group *const *groups, size_t n, Refusal *why);

/* The same, up to the first part that cannot be opened that way: it and the rest stay closed, and
 * are for group_open_each(). */
void groups_open_some(Group *const *groups, size_t n);

/* Opens a group that was closed to yield, on the threads that its targets have now. REFUSAL_BUSY:
 * threads are created faster than that. */
int group_reopen(Group *g, Refusal *why);
