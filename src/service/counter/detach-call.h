/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counter.DetachProcess: which of the attached processes a number means to its caller.
 *
 * To a caller in another PID namespace it is a number of that namespace. Processes of other
 * namespaces at the same depth, as in two containers, may have the same one.
 */

#include "service/counter/counter.h"

/* The handler; userdata is the counter. */
int detach_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
