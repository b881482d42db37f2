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

#include "service/daemon/service.h"

/* Before peers_new(), as redaction_init(). */
int idle_exit_init(Service *s);

/* The timer behind service_touch(). */
int idle_exit_make_timer(Service *s);
