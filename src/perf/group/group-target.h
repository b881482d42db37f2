/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The processes that a group counts.
 */

#include "perf/group/group.h"

/* Adds a copy of target, which shares its pidfd, and a part for each thread: its own, or those
 * of its descendants too. pids: the processes of these threads; NULL: all are the target's. */
int group_attach(Group *g, const GroupTarget *target, const pid_t *tids, const pid_t *pids,
                 size_t n_tids);

/* A pending target counts like the others from now on. */
void group_accept(Group *g, size_t target);

/* Closes its events; what they have counted stays in the sum (past). Later targets move up. */
void group_detach(Group *g, size_t target);

/* The index of a process that lives (or is a zombie) among the targets, else n_targets. One that
 * has ended is not found, as its number may be reused. */
size_t group_find_target(const Group *g, pid_t pid);

/* Looks at n targets, others each time, and detaches those that have ended, except those with
 * descendants, which may still live, and those that somebody awaits. */
void group_reap(Group *g, size_t n);

/* Whether somebody else than the group has it pending: they accept or detach it. */
bool group_target_is_awaited(const Group *g, size_t target);

/* Whether one of the target's threads, or of its descendants', is open. */
bool group_is_open_at(const Group *g, size_t target);
