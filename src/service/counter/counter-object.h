/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counter objects on the bus, /org/perfalloc1/counter/N: what is known of them, and how they
 * are found. What happens to them is in counter.h.
 *
 * Counters opened as a group share one CounterSet; any other counter has a set of its own. The set
 * belongs to a uid and, unless it is persistent, to the connection that opened it.
 */

#include <sys/queue.h>

#include "perf/group/group.h"
#include "service/bus/object.h"
#include "service/bus/peer.h"
#include "service/hold/hold-object.h"
#include "service/sibling/reader.h"
#include "service/store/store.h"
#include "service/util/context.h"
#include "yield/counter-yielder.h"

typedef struct Counter Counter;
typedef struct CounterListener CounterListener;
typedef struct CounterSet CounterSet;
typedef struct CounterUser CounterUser;
typedef struct Counters Counters;

#define COUNTERS_RECENT 1024u

struct CounterSet {
        Counters *counters;
        Context *context;
        LIST_HEAD(, Counter) members; /* that are not closed */
        LIST_ENTRY(CounterSet) sets;  /* counters->sets */
        Group *group;                 /* the monitor's, when there is one */
        CounterYielder *monitor;      /* role monitor, else NULL */
        uid_t uid;
        Peer *peer; /* who opened it; NULL once that has left, and for a configured one */
        LIST_HEAD(, CounterUser) users; /* the last one's leaving ends it, unless: */
        bool persistent;
        bool handed_out;  /* clients have descriptors of it */
        ReaderJob *guard; /* looks at a target that was opened anew */
        bool configured;  /* from monitors.d: not to be closed by anybody */
        bool unclaimed;   /* a configured one of an earlier run, whose file was not read yet */
        char *name;
        char *cpus;  /* as asked for, "" for a process */
        Scope scope; /* the slots that it may take counters of */
        QuotaCharge counter_charge, descriptor_charge;
        StoreItem item;
        uint64_t kept;    /* group->version of the descriptors in there */
        uint64_t limited; /* its share in counters->n_limited */
        bool by_hold;     /* is in counters->n_by_hold */
        size_t unkept;    /* its share in counters->n_unkept */
};

/* A connection that uses a set: its owner's, or a reader's. */
struct CounterUser {
        Peer *peer;
        QuotaCharge charge;
        LIST_ENTRY(CounterUser) users;
};

/* What changed and is still to be told. */
enum {
        COUNTER_CHANGED_STATE = 1 << 0,
        COUNTER_CHANGED_PERSISTENT = 1 << 1,
};

struct Counter {
        Object object;
        CounterSet *set;
        size_t event;   /* index in the set's group */
        bool announced; /* InterfacesAdded was sent */
        bool queued;    /* in counters->changed */
        unsigned news;  /* COUNTER_CHANGED_ bits */
        LIST_HEAD(, CounterListener) listeners;
        LIST_ENTRY(Counter) members;
        TAILQ_ENTRY(Counter) changed;
};

/* Somebody outside this folder who has to know when a counter is closed. */
struct CounterListener {
        void (*closed)(CounterListener *l, Counter *c); /* it is off the list by then */
        LIST_ENTRY(CounterListener) listeners;
};

TAILQ_HEAD(CounterList, Counter);
LIST_HEAD(CounterSetList, CounterSet);

struct Counters {
        Context *context;
        Holds *holds;
        Objects objects;
        Counter *recent[COUNTERS_RECENT]; /* made or found last, by id */
        struct CounterSetList sets;
        struct CounterList changed; /* State to be signalled when there is time */
        sd_event_source *announce;
        sd_event_source *retry; /* counters that could not be opened again */
        uint64_t n_limited;     /* descriptors of those that KeptDescriptors= is about */
        size_t n_by_hold;       /* sets that are kept beyond that, for their user holds counters */
        bool unkept_changed;    /* and is not written down */
        bool unkept_told;       /* that there are any */
};

static inline Counter *counter_of_object(Object *o) {
        return container_of(o, Counter, object);
}

Counter *counter_find(Counters *counters, uint64_t id); /* NULL: there is none */
Counter *counter_find_path(Counters *counters, const char *path);

const char *counter_state(const Counter *c);

/* l must stay where it is until it is told, or removed. */
void counter_listen(Counter *c, CounterListener *l);

/* What is in error, or may come to be, is looked at again soon. */
void counters_retry_soon(Counters *counters);

/* Opens what is not open, as group_open(). */
int counter_set_open(CounterSet *set, Refusal *why);
