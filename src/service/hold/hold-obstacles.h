/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is in a hold's way: monitors past their deadline, the service's own counters of other users,
 * and, when the probe found counters taken, all processes that have perf events open, as
 * candidates.
 */

#include "perf/process/users.h"
#include "service/hold/hold-object.h"

/* Calls f for each: while monitors give way, those who have not answered yet; in the queue, the
 * holds before it; later, who was found. f returns negative to stop. */
int hold_obstacles(const Hold *h, int (*f)(void *userdata, pid_t pid, const char *who),
                   void *userdata);

/* Best effort: an obstacle that cannot be remembered is left out. Returns 0; hold is a Hold *. */
int hold_add_obstacle(void *hold, pid_t pid, const char *who);

void hold_add_asked(Hold *h);    /* monitors that were asked and have not answered */
void hold_add_blockers(Hold *h); /* holds that it waits for in the queue */

/* Whom a scan has found; the kernel, or a process that cannot be seen, where there is nobody. */
void hold_add_users(Hold *h, const User *users, size_t n_users);
