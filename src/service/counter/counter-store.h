/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters across restarts of the service.
 *
 * The copies of their descriptors that are kept have the kernel count on, and also keep what an
 * operation closes until what it changed is written down: so a kill in the middle of one leaves
 * base and descriptor as they were together before it, and no value falls back or counts twice.
 */

#include "service/counter/counter.h"

/* From now on this is what is known of it; before anybody is told. Of a set that is still being
 * opened nothing is. */
void counter_set_save(CounterSet *set);

/* It is no more. */
void counter_set_forget(CounterSet *set);

/* The user holds counters now, or does not any more: what is his is kept for that, or was. */
void counters_hold_changed(Service *s, uid_t uid);

/* All of them, for less than one after the other costs. */
void counter_sets_save(Service *s, CounterSet *const *sets, size_t n);

/* The sets of an earlier run, with their connections. Nothing is done to the kernel's events, and
 * nobody is told, before counters_go_on(). -ENOMEM. */
int counters_restore(Service *s);

/* When all who give way are there again: events count or do not, as they should. */
void counters_go_on(Service *s);

/* When nothing is kept any more of what the earlier run had closed: what should be open and is not
 * is opened. */
void counters_reopen(Service *s);

/* ---- from counter.c ---- */

/* A set without users, counters, charges; takes the group over, also on failure. */
int counter_set_make(Service *s, Group *group, const CounterSetOptions *o, CounterSet **ret);

/* One of role monitor, which is not open yet or not to be trusted, starts to give way. */
int counter_set_enroll(CounterSet *set, const CounterSetOptions *o);

/* -EEXIST: the number is somebody else's. */
int counter_add(CounterSet *set, size_t event, uint64_t id, Counter **ret);

/* Memory and own descriptors alone, with the counters: what is kept of it stays. Returns NULL. */
CounterSet *counter_set_discard(CounterSet *set);
DEFINE_CLEANUP(CounterSet *, counter_set_discard)

/* Tells monitors what is demanded of them now: somebody came or went while counters are held. */
int counters_apply(Service *s);

void counters_retry_soon(Service *s);
