/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counter objects on the bus, /org/perfalloc1/counter/N.
 *
 * Counters opened as a group share one CounterSet; any other counter has a set of its own. The set
 * belongs to a uid and, unless it is persistent, to the connection that opened it.
 */

#include <sys/queue.h>

#include "perf/group.h"
#include "service/service.h"
#include "yield/own.h"

typedef struct CounterSet CounterSet;
typedef struct CounterSetOptions CounterSetOptions;

struct CounterSet {
        Service *service;
        LIST_HEAD(, Counter) members; /* that are not closed */
        LIST_ENTRY(CounterSet) sets;  /* service->sets */
        Group *group;                 /* the monitor's, when there is one */
        OwnMonitor *monitor; /* role monitor, else NULL */
        uid_t uid;
        Peer *peer; /* whose leaving ends it, NULL: nobody's */
        bool configured; /* from monitors.d: not to be closed by anybody */
        char *name;
        char *cpus; /* as asked for, "" for a process */
        Scope scope; /* the cells that it may take counters of */
        QuotaCharge counters, descriptors;
};

struct Counter {
        uint64_t id;
        char *path;
        CounterSet *set;
        size_t event; /* index in the set's group */
        bool announced; /* InterfacesAdded was sent */
        bool queued;    /* in service->changed */
        Sampled *sampled; /* what samplers have of it, NULL: none does */
        LIST_ENTRY(Counter) members;
        TAILQ_ENTRY(Counter) changed;
};

struct CounterSetOptions {
        uid_t uid;
        Peer *peer;
        const char *name;
        const CpuSet *cpus; /* NULL: process scope */
        bool monitor, configured;
        uint32_t priority;   /* of a monitor */
        PlanClass yields_to; /* likewise */
};

/* Takes group, which has its parts and is not open yet, over in any case, charges it and opens it (disabled)
 * unless its counters are held now. The set has no counters yet: counter_new() adds one for each event, the
 * last counter_close() frees the set. Refusals are those of quota_charge() and group_open(). */
int counter_set_new(Service *s, Group *group, const CounterSetOptions *options, CounterSet **ret,
                    Refusal *why);
CounterSet *counter_set_free(CounterSet *set); /* with its counters */
DEFINE_CLEANUP(CounterSet *, counter_set_free)

int counter_new(CounterSet *set, size_t event, Counter **ret);
void counter_close(Counter *c);

Counter *counter_find(Service *s, uint64_t id);

/* The counter at path, which the sender of m may read: 0, REFUSAL_UNKNOWN_OBJECT, or what service_check_owner()
 * returns. */
int counter_find_readable(Service *s, Peer *peer, sd_bus_message *m, const char *path,
                          Counter **ret, Refusal *why);

const char *counter_state(const Counter *c);

/* Its State may have changed (or it is new): told to everybody when the loop has time. */
void counter_set_changed(CounterSet *set);

/* The peer has left: what belongs to it goes. */
void counters_forget_peer(Service *s, Peer *peer);

/* A CPU has come online or gone offline. */
void counters_cpu_changed(Service *s, unsigned cpu, bool online);

/* Other people's foreground counters in the scope, for the obstacles of an exclusive hold: calls f for each
 * set; stops when f returns non-zero. */
int counters_foreign(Service *s, uid_t uid, const Scope *scope,
                     int (*f)(void *userdata, const CounterSet *set), void *userdata);

int counters_init(Service *s);
int counter_bus_register(Service *s);
void counters_done(Service *s); /* closes all */
