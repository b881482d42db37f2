/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is in a hold's way: monitors past their deadline, other people's counters of this service,
 * and, when the probe found counters taken, all processes that have perf events open, as
 * candidates.
 */

#include "service/hold/hold.h"

void hold_obstacles_clear(Hold *h);

/* Best effort: what cannot be remembered is not told. Returns 0; hold is a Hold *. */
int hold_add_obstacle(void *hold, pid_t pid, const char *who);

void hold_add_asked(Hold *h);            /* monitors that were asked and have not answered */
void hold_add_blockers(Hold *h);         /* holds that it waits for in the queue */
void hold_add_foreign_counters(Hold *h); /* of other users, in the scope */

/* Whom a scan has found, behind those of this service's own counters that have not given way. */
void hold_add_users(Hold *h, const User *users, size_t n_users);
