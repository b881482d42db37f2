/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perfalloc -d: the child does everything, in the foreground's process group and on its terminal
 * until the counters are held (somebody may have to give a password), and only then lets go of
 * both. The parent's exit status tells how that went.
 */

#include "core/util.h"

/* The parent does not return but exits: 0 once the child has detached, EXIT_FAILURE when it ends
 * before. The child has *ret_report and its standard streams but no other descriptor, and ends with
 * its parent. Negative errno: it could not be. */
int daemon_fork(int *ret_report);

/* In the child: a session of its own, / as working directory, /dev/null for its standard streams;
 * then the parent is told. Closes report. What is said from now on is in the system's log. */
int daemon_detach(int report);
