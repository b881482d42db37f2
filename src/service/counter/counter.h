/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters from their opening to their end.
 */

#include "service/counter/counter-object.h"

typedef struct CounterSetOptions CounterSetOptions;

struct CounterSetOptions {
        uid_t uid;
        Peer *peer;
        const char *name;
        const CpuSet *cpus; /* NULL: process scope */
        bool monitor, configured, persistent;
        uint32_t priority;   /* of monitor counters */
        PlanClass yields_to; /* of monitor counters */
        uint64_t seq; /* of monitor counters: their age among the yielders; 0: they are new */
};

/* Takes over group, also on failure; it has its parts and is not open. Charges it. The caller opens
 * it (counter_sets_open()). The set has no counters yet: counter_new() adds one for each event, and
 * the last counter_close() frees the set. Refusals are those of quota_charge(). */
int counter_set_new(Counters *counters, Group *group, const CounterSetOptions *options,
                    CounterSet **ret, Refusal *why);
CounterSet *counter_set_free(CounterSet *set); /* with its counters */
DEFINE_CLEANUP(CounterSet *, counter_set_free)

int counter_new(CounterSet *set, size_t event, Counter **ret);
void counter_close(Counter *c);

/* The number of a new instant: a set is read once at each, and its counters are sums of that. */
uint64_t counters_now(Counters *counters);
void counter_set_refresh(CounterSet *set, uint64_t instant);

/* Reads for a client, as group_read() does. */
void counter_read(Counter *c, uint64_t instant, Reading *ret);

/* A CPU has come online or gone offline. */
void counters_cpu_changed(Counters *counters, unsigned cpu, bool online);

/* Calls f for other users' foreground counters in the scope, until it returns non-zero. */
int counters_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                     int (*f)(void *userdata, const CounterSet *set), void *userdata);

int counters_init(Counters *counters, Context *context, Holds *holds);
void counters_done(Counters *counters); /* sends no signals; what is stored stays so */

/* Tells yielders what they have to yield now: one has come or gone while counters are held. */
int counters_apply(Counters *counters);

/* ---- for counter-restore.c ---- */

/* A set without users, counters and charges. Takes over the group, also on failure. */
int counter_set_make(Counters *counters, Group *group, const CounterSetOptions *o,
                     CounterSet **ret);

/* Makes a set of monitor counters a yielder, before it is opened or restored. */
int counter_set_enroll(CounterSet *set, const CounterSetOptions *o);

/* -EEXIST: the number is in use. */
int counter_add(CounterSet *set, size_t event, uint64_t id, Counter **ret);

/* Frees the memory and the set's own descriptors, with its counters. The store keeps its copies.
 * Returns NULL. */
CounterSet *counter_set_discard(CounterSet *set);
DEFINE_CLEANUP(CounterSet *, counter_set_discard)
