/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counter objects on the bus, /org/perfalloc1/counter/N.
 *
 * Counters opened as a group share one CounterSet; any other counter has a set of its own. The set
 * belongs to a uid and, unless it is persistent, to the connection that opened it.
 */

#include <sys/queue.h>

#include "perf/group/group.h"
#include "service/daemon/service.h"
#include "service/store/store.h"
#include "yield/counter-yielder.h"

typedef struct CounterSet CounterSet;
typedef struct CounterSetOptions CounterSetOptions;
typedef struct CounterUser CounterUser;

struct CounterSet {
        Service *service;
        LIST_HEAD(, Counter) members; /* that are not closed */
        LIST_ENTRY(CounterSet) sets;  /* service->sets */
        Group *group;                 /* the monitor's, when there is one */
        CounterYielder *monitor;      /* role monitor, else NULL */
        uid_t uid;
        Peer *peer; /* who opened it; NULL once that has left, and for a configured one */
        LIST_HEAD(, CounterUser) users; /* the last one's leaving ends it, unless: */
        bool persistent;
        bool handed_out;   /* clients have descriptors of it */
        ReaderJob *guard;  /* looks at a target that was opened anew */
        uint64_t attached; /* how often a process was */
        bool configured;   /* from monitors.d: not to be closed by anybody */
        bool unclaimed;    /* a configured one of an earlier run, whose file was not read yet */
        char *name;
        char *cpus;  /* as asked for, "" for a process */
        Scope scope; /* the slots that it may take counters of */
        QuotaCharge counters, descriptors;
        StoreItem item;
        uint64_t kept;    /* group->version of the descriptors in there */
        uint64_t limited; /* its share in service->n_limited */
        bool by_hold;     /* is in service->n_by_hold */
        size_t unkept;    /* its share in service->n_unkept */
};

/* A connection that uses a set: its owner's, or a reader's. */
struct CounterUser {
        Peer *peer;
        bool other; /* a reader who may count processes that he may not trace */
        QuotaCharge charge;
        LIST_ENTRY(CounterUser) users;
};

/* What changed and is still to be told. */
enum {
        COUNTER_CHANGED_STATE = 1 << 0,
        COUNTER_CHANGED_PERSISTENT = 1 << 1,
};

struct Counter {
        uint64_t id;
        char *path;
        CounterSet *set;
        size_t event;          /* index in the set's group */
        bool announced;        /* InterfacesAdded was sent */
        bool queued;           /* in service->changed */
        unsigned news;         /* COUNTER_CHANGED_ bits */
        ReadingCache *sampled; /* what samplers have of it, NULL: none does */
        LIST_ENTRY(Counter) members;
        TAILQ_ENTRY(Counter) changed;
};

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

/* Takes group, which has its parts and is not open yet, over in any case, charges it and opens it
 * (disabled) unless its counters are held now. The set has no counters yet: counter_new() adds one
 * for each event, the last counter_close() frees the set. Refusals are those of quota_charge() and
 * group_open(). */
int counter_set_new(Service *s, Group *group, const CounterSetOptions *options, CounterSet **ret,
                    Refusal *why);
CounterSet *counter_set_free(CounterSet *set); /* with its counters */
DEFINE_CLEANUP(CounterSet *, counter_set_free)

int counter_new(CounterSet *set, size_t event, Counter **ret);
void counter_close(Counter *c);

Counter *counter_find(Service *s, uint64_t id);

/* The counter at path, which the sender of m may read: 0, REFUSAL_UNKNOWN_OBJECT, or what
 * service_check_owner() returns. */
int counter_find_readable(Service *s, Peer *peer, sd_bus_message *m, const char *path,
                          Counter **ret, Refusal *why);

const char *counter_state(const Counter *c);

/* For somebody who is told: as group_read(). */
void counter_read(Counter *c, Reading *ret, Quality *ret_quality);

/* ---- what everybody is told (counter-tell.c) ---- */

/* Its State may have changed (or it is new): told when the loop has time. */
void counter_set_changed(CounterSet *set);

void counter_changed(Counter *c, unsigned news);
int counters_tell_init(Service *s);

/* ---- its processes (counter-target.c) ---- */

/* Opens what is not open, as group_open(). */
int counter_set_open(CounterSet *set, Refusal *why);

/* Opens tids, of the target and its descendants, unless the set has yielded; they do not count
 * before counter_set_accept(). Refusals are those of quota_resize() and group_open(); then all is
 * as before. */
int counter_set_attach(CounterSet *set, const GroupTarget *target, const pid_t *tids, size_t n_tids,
                       Refusal *why);
void counter_set_accept(CounterSet *set, size_t target);
void counter_set_detach(CounterSet *set, size_t target);

/* Gives back what targets that have ended still take. */
void counter_set_reap(CounterSet *set);

/* Targets that were opened anew, after a yield, may have become what their user may not trace. They
 * count again once they were inspected, or are detached. */
void counter_set_guard(CounterSet *set);

/* ---- its connections (counter-user.c) ---- */

/* other: a reader who is allowed count-other. REFUSAL_LIMITS_EXCEEDED, -ENOMEM. */
int counter_set_add_user(CounterSet *set, Peer *peer, bool other, Refusal *why);
bool counter_set_has_user(const CounterSet *set, const Peer *peer);

/* Readers who are not allowed count-other: what is counted now they may not be allowed to. */
void counter_set_drop_readers(CounterSet *set);
void counter_set_drop_users(CounterSet *set);

/* True when this was the last one and the set is to go. */
bool counter_set_forget_user(CounterSet *set, const Peer *peer);

void counter_set_persist(CounterSet *set, bool persistent);

/* Whether the peer may read the counter: as service_check_owner(), and whoever uses it. */
int counter_check_reader(Counter *c, Peer *peer, sd_bus_message *m, Refusal *why);

/* The peer has left: what belongs to it goes. */
void counters_forget_peer(Service *s, Peer *peer);

/* A CPU has come online or gone offline. */
void counters_cpu_changed(Service *s, unsigned cpu, bool online);

/* Other people's foreground counters in the scope, for the obstacles of an exclusive hold: calls f
 * for each set; stops when f returns non-zero. */
int counters_foreign(Service *s, uid_t uid, const Scope *scope,
                     int (*f)(void *userdata, const CounterSet *set), void *userdata);

int counters_init(Service *s);
int counter_bus_register(Service *s);
void counters_done(Service *s); /* what is kept stays so, and nobody is told; closes the others */
