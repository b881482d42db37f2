/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counter.AttachProcess, after FreeBSD's pmc_attach(3).
 */

#include "service/counter/counter.h"

/* The handler; userdata is the counter. */
int attach_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* Calls f for the counters of other users in the scope to which a process is being attached. */
void attach_calls_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                          int (*f)(void *userdata, const CounterSet *set), void *userdata);

/* ---- for DetachProcess too ---- */

int attach_call_refuse_scope(const Counter *c, Refusal *why);

/* The pid of an argument; 0 is the caller. REFUSAL_INVALID_PROCESS: no process can have it. */
int attach_call_read_pid(uint32_t number, const Peer *peer, pid_t *ret, Refusal *why);
