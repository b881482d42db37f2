/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Parents and children of processes, by what any process may read in /proc.
 */

#include <sys/types.h>

#include "perf/process/threads.h"

/* The parent of a process; 0: it has none, or has ended. */
pid_t tree_parent(pid_t pid);

/* Whether one of these threads of the process has a child (zombies too); true also: unknown. */
bool tree_has_children(pid_t pid, const Threads *threads);

/* Whether is_it() is true of an ancestor of the process, which the caller holds by a pidfd. */
bool tree_descends(pid_t pid, bool (*is_it)(const void *userdata, pid_t pid), const void *userdata);

/* The number of the newest task in this PID namespace; 0: unknown. While it stays the same no task
 * is created. */
pid_t tree_last_born(void);
