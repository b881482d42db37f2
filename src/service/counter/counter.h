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
        uint32_t priority;   /* of a monitor */
        PlanClass yields_to; /* likewise */
        uint64_t seq;        /* likewise: its age in the roster, 0: it is new */
};

/* Takes group, which has its parts and is not open yet, over in any case, and charges it. The
 * caller opens it (counter_sets_open()). The set has no counters yet: counter_new() adds one for
 * each event, the last counter_close() frees the set. Refusals are those of quota_charge(). */
int counter_set_new(Counters *counters, Group *group, const CounterSetOptions *options,
                    CounterSet **ret, Refusal *why);
CounterSet *counter_set_free(CounterSet *set); /* with its counters */
DEFINE_CLEANUP(CounterSet *, counter_set_free)

int counter_new(CounterSet *set, size_t event, Counter **ret);
void counter_close(Counter *c);

/* For somebody who is told: as group_read(). */
void counter_read(Counter *c, Reading *ret, Quality *ret_quality);

/* The peer has left: what belongs to it goes. */
void counters_forget_peer(Counters *counters, Peer *peer);

/* A CPU has come online or gone offline. */
void counters_cpu_changed(Counters *counters, unsigned cpu, bool online);

/* Calls f for the sets that count in the scope, until it returns non-zero: other users' foreground
 * counters, or all that have not yielded. */
int counters_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                     int (*f)(void *userdata, const CounterSet *set), void *userdata);
int counters_standing(const Counters *counters, const Scope *scope,
                      int (*f)(void *userdata, const CounterSet *set), void *userdata);

int counters_init(Counters *counters, Context *context, Holds *holds);
void counters_done(
        Counters *counters); /* what is kept stays so, and nobody is told; closes the others */

/* Tells monitors what is demanded of them now: somebody came or went while counters are held. */
int counters_apply(Counters *counters);

/* ---- for counter-restore.c ---- */

/* A set without users, counters, charges; takes the group over, also on failure. */
int counter_set_make(Counters *counters, Group *group, const CounterSetOptions *o,
                     CounterSet **ret);

/* One of role monitor, which is not open yet or not to be trusted, starts to give way. */
int counter_set_enroll(CounterSet *set, const CounterSetOptions *o);

/* -EEXIST: the number is somebody else's. */
int counter_add(CounterSet *set, size_t event, uint64_t id, Counter **ret);

/* Memory and own descriptors alone, with the counters: what is kept of it stays. Returns NULL. */
CounterSet *counter_set_discard(CounterSet *set);
DEFINE_CLEANUP(CounterSet *, counter_set_discard)
