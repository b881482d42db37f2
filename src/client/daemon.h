/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perfalloc -d. The child stays in the foreground's process group and on its terminal until the
 * counters are held, because a person may have to give a password. Then it detaches from both. The
 * parent's exit status tells how that went.
 */

#include "core/util.h"

/* The parent does not return. It exits: 0 once the child has detached, EXIT_FAILURE if the child
 * ends before that. The child has *ret_report, its standard streams and no other descriptor, and
 * ends with its parent. Negative errno: there is no child. */
int daemon_fork(int *ret_report);

/* In the child: makes a session of its own, with / as working directory and /dev/null for the
 * standard streams, and then tells the parent. Closes report. Later messages go to the system's
 * log. */
int daemon_detach(int report);
