/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Idle exit: STOPPING=1, the name is given back, what still arrives is answered, and the process
 * ends, after a few seconds in any case.
 *
 * STOPPING=1 comes before the name is given back: a call that arrives without it would have systemd
 * start a unit that runs. So leaving is never taken back. What would be made meanwhile would live
 * in a process that nobody finds by its name, beside a successor with a ledger of its own. So all
 * calls are refused then except a few that change nothing, with the error that says that there is
 * no service of this name. A client that calls again reaches the successor.
 */

#include "service/util/context.h"

typedef struct IdleExit IdleExit;

/* is_idle: whether nothing is held, open, registered or configured. Before scheduler_new(), whose
 * filter must run first. */
int idle_exit_new(Context *context, bool (*is_idle)(const void *userdata), const void *userdata,
                  IdleExit **ret);
IdleExit *idle_exit_free(IdleExit *x);

/* Nothing may be made any more. */
bool idle_exit_is_leaving(const IdleExit *x);

/* Something was made or has gone: the time of idleness starts anew, or not at all. */
void idle_exit_touch(IdleExit *x);
