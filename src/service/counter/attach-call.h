/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counter.AttachProcess and DetachProcess, after FreeBSD's pmc_attach(3).
 */

#include "service/counter/counter.h"

/* The handlers; userdata is the counter. */
int attach_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
int detach_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* Calls f for the counters of other users in the scope to which a process is being attached. */
void attach_calls_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                          int (*f)(void *userdata, const CounterSet *set), void *userdata);
