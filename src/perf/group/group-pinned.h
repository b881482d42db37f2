/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pinned events that find no counter: the kernel drops them for good, and before 6.13 does not even
 * wake a poller. So they are looked at from time to time, and enabled again.
 */

#include "perf/group/group.h"

/* Whether the kernel has dropped a pinned event of the group that should count. */
bool group_is_dropped(const Group *g);

/* The same of one part, by the end of file at its leader (perf_event_open(2)); siblings can still
 * be read. */
bool group_part_is_dropped(const Group *g, size_t part);

/* Tries to bring back what was dropped. The time off the PMU is enabled and not running, so what it
 * counts is scaled from then on. True: something was dropped or came back since the last call. */
bool group_revive(Group *g);

/* The same, before something else enables it; the next group_revive() tells. */
void group_enable_dropped(Group *g);

/* Notes what could not be read just now because it was dropped; the next group_revive() tells. */
void group_note_dropped(Group *g);

/* The group is about to be stopped, or to yield: what was dropped until now is accounted for. */
void group_leave_dropped(Group *g);

/* What is pinned on CPUs is opened anew as flexible events, from the part *next on, until that time
 * (CLOCK_MONOTONIC). What it counted stays; each event misses some µs. 1: done, and the group is
 * not pinned any more. 0: some is left. What could not be opened is in error, see group_mend(). */
int group_unpin(Group *g, size_t *next, uint64_t until_usec);
