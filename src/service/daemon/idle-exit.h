/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Idle exit: the service sends STOPPING=1, releases its name, answers what still arrives, and ends,
 * after a few seconds at the latest.
 *
 * STOPPING=1 comes before the release: a call that arrives after it would have systemd start a unit
 * that is still running. So leaving is final. An object that is created while leaving would belong
 * to a process that nobody finds by its name, beside a successor with a ledger of its own. So all
 * calls except a few that change nothing are refused then, with the error that there is no service
 * of this name. The caller's next try reaches the successor.
 */

#include "service/util/context.h"

typedef struct IdleExit IdleExit;

/* is_idle: whether nothing is held, open, registered or configured. To be called before
 * scheduler_new(), whose filter must run first. */
int idle_exit_new(Context *context, bool (*is_idle)(const void *userdata), const void *userdata,
                  IdleExit **ret);
IdleExit *idle_exit_free(IdleExit *x);

/* Nothing may be created any more. */
bool idle_exit_is_leaving(const IdleExit *x);

/* Something was created or removed: the idle time starts anew, or not at all. */
void idle_exit_touch(IdleExit *x);
