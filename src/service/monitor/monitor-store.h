/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Registered monitors as they are kept for the next run of the service.
 */

#include "service/monitor/monitor-object.h"

/* It enters the store, in that state. */
void monitor_keep(Monitor *monitor, YielderState state);

/* What is known of it now. state is what it will be when whoever is concerned has been told. */
void monitor_save(Monitor *monitor, YielderState state);

/* Reads back what monitor_save() has written, with the client. -EBADMSG, -ENOMEM; -ESTALE: the
 * client was on another bus. */
int monitor_unpack(Monitor *monitor, const Unpack *state);
