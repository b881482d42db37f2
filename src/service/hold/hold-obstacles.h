/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is in a hold's way: yielders past their deadline, the service's own counters of other users,
 * and, when the probe found counters taken, all processes with open perf events, as candidates.
 */

#include "perf/process/users.h"
#include "service/hold/hold-object.h"

/* Calls f for each obstacle. While it is yielding, these are the yielders that have not answered;
 * in the queue, the holds ahead; later, what was found. f returns a negative value to stop. */
int hold_obstacles(const Hold *h, int (*f)(void *userdata, pid_t pid, const char *who),
                   void *userdata);

/* Best effort: without memory an obstacle is left out. Returns 0. hold is a Hold *. */
int hold_add_obstacle(void *hold, pid_t pid, const char *who);

void hold_add_asked(Hold *h);    /* yielders that were asked and have not answered */
void hold_add_blockers(Hold *h); /* holds ahead of it in the queue */

/* Whom a scan has found: those that have what they opened within their own holds, or all others. */
void hold_add_users(Hold *h, const User *users, size_t n_users, bool holders);
