/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The connections that use a counter set: those of its owner, and of reading users.
 */

#include "service/auth/asked.h"
#include "service/counter/counter-object.h"

/* REFUSAL_LIMITS_EXCEEDED, -ENOMEM. */
int counter_set_add_user(CounterSet *set, Peer *peer, Refusal *why);
bool counter_set_has_user(const CounterSet *set, const Peer *peer);

void counter_set_drop_users(CounterSet *set);

/* True: this was the last user, and the set has to end. */
bool counter_set_forget_user(CounterSet *set, const Peer *peer);

/* What using the set amounts to, for polkit. */
void counter_set_ask(const CounterSet *set, Asked *ret);

void counter_set_persist(CounterSet *set, bool persistent);

/* Whether the peer may read the counter: as auth_check_owner(), or because it uses the set. */
int counter_check_reading(Counter *c, Peer *peer, sd_bus_message *m, Refusal *why);

/* The counter at path, if the sender of m may read it: 0, REFUSAL_UNKNOWN_OBJECT, or what
 * auth_check_owner() returns. */
int counter_find_readable(Counters *counters, Peer *peer, sd_bus_message *m, const char *path,
                          Counter **ret, Refusal *why);
