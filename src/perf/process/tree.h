/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who descends from whom, as far as anybody may read it in /proc.
 */

#include <sys/types.h>

#include "perf/process/threads.h"

/* The parent of a process; 0 when it has none, or has ended. */
pid_t tree_parent(pid_t pid);

/* Whether one of these threads of the process has a child that lives (or is a zombie). Not to know
 * means yes. */
bool tree_has_children(pid_t pid, const Threads *threads);

/* Whether above the process, which the caller holds by a pidfd, there is one for which is_it()
 * answers yes. */
bool tree_descends(pid_t pid, bool (*is_it)(const void *userdata, pid_t pid), const void *userdata);

/* The number that the task born last in our pid namespace was given; 0: unknown. While it stays the
 * same nobody is born. */
pid_t tree_last_born(void);
