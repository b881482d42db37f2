/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stores registered monitors for the next run of the service.
 */

#include "service/monitor/monitor-object.h"

/* Adds it to the store, in that state. */
void monitor_keep(Monitor *monitor, YielderState state);

/* Saves its present data. state is the one that it will have once those concerned are told. */
void monitor_save(Monitor *monitor, YielderState state);

/* Reads what monitor_save() has written, and the client. -EBADMSG, -ENOMEM; -ESTALE: the client was
 * on another bus. */
int monitor_unpack(Monitor *monitor, const Unpack *state);
