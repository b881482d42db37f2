/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One OpenCounters call: read, target inspected, authorized, opened disabled, target inspected
 * again, started.
 */

#include "service/counter/counter-object.h"

/* The handler of Manager.OpenCounters; userdata is the Counters. */
int open_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* Calls f for the foreground counters of other users in the scope that are being opened on a
 * process. */
void open_calls_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                        int (*f)(void *userdata, const CounterSet *set), void *userdata);
