/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Idle exit: STOPPING=1, the name is given back, what still arrives is answered, and the process
 * ends.
 *
 * What would be made in between would live in a process that nobody finds by its name any more,
 * beside a successor with a ledger of its own. So a call that makes something is refused then, with
 * the error that says that there is no service of this name; whoever calls again gets the
 * successor.
 */

#include "service/util/context.h"

typedef struct IdleExit IdleExit;

/* is_idle: whether nothing is held, open, registered or configured. Before scheduler_new(), whose
 * filter must run first. */
int idle_exit_new(Context *context, bool (*is_idle)(const void *userdata), const void *userdata,
                  IdleExit **ret);
IdleExit *idle_exit_free(IdleExit *x);

/* Something was made or has gone: the time of idleness starts anew, or not at all. */
void idle_exit_touch(IdleExit *x);
