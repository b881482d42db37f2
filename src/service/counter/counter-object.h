/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters as objects, /org/perfalloc1/counter/N: their data, and how they are found. What happens
 * to them is in counter.h.
 *
 * Counters that were opened as a group share one CounterSet; any other counter has one of its own.
 * A set belongs to a uid and, unless it is persistent, to the connection that opened it.
 */

#include <sys/queue.h>

#include "perf/group/group.h"
#include "service/bus/object.h"
#include "service/bus/peer.h"
#include "service/hold/hold-object.h"
#include "service/sibling/reader.h"
#include "service/store/store.h"
#include "yield/counter-yielder.h"

typedef struct Counter Counter;
typedef struct CounterListener CounterListener;
typedef struct CounterSet CounterSet;
typedef struct CounterUser CounterUser;
typedef struct ClosingGroup ClosingGroup;
typedef struct Counters Counters;

#define COUNTERS_RECENT 1024u

struct CounterSet {
        Counters *counters;
        Context *context;
        LIST_HEAD(, Counter) members;  /* those that are not closed */
        LIST_ENTRY(CounterSet) sets;   /* counters->sets */
        LIST_ENTRY(CounterSet) pinned; /* counters->pinned, if on_pinned_list */
        Group *group;                  /* the yielder's, if there is one */
        CounterYielder *yielder;       /* of a monitor counter, else NULL */
        uid_t uid;
        Peer *peer; /* that opened it; NULL: it has left, or the set is configured */
        LIST_HEAD(, CounterUser) users; /* without users the set ends, unless it is persistent */
        bool persistent;
        bool ending;     /* in counters->ending */
        bool handed_out; /* clients have descriptors of it */
        bool pins; /* nobody asked for pinned: its user held the counters when it was opened */
        bool on_pinned_list;
        size_t unpinned;  /* so many of its parts, see group_unpin() */
        uint64_t instant; /* when it was read last */
        ReaderJob *guard; /* inspects a target that was reopened */
        bool configured;  /* from monitors.d: clients cannot close it */
        char *name;
        char *cpus;  /* as asked for; "" for a process */
        Scope scope; /* the slots whose counters it may take */
        QuotaCharge counter_charge, descriptor_charge;
        QuotaCharge kept_charge; /* its share in counters->n_limited */
        StoreItem item;
        uint64_t kept;      /* group->version of the stored descriptors */
        GroupExtent stored; /* so much of the group is stored */
        CounterUse *uses; /* of a foreground set, by the parts of scope, once somebody has asked */
        bool by_hold;     /* counted in counters->n_by_hold */
        size_t unkept;    /* its share in the host state's n_unkept */
        TAILQ_ENTRY(CounterSet) endings;
};

/* A connection that uses a set: one of its owner, or one of a reading user. */
struct CounterUser {
        Peer *peer;
        QuotaCharge charge;
        LIST_ENTRY(CounterUser) users;
};

/* Changes that are not signalled yet. */
enum {
        COUNTER_CHANGED_STATE = 1 << 0,
        COUNTER_CHANGED_PERSISTENT = 1 << 1,
};

#define COUNTER_KEPT_SIGNALS 2u

struct Counter {
        Object object;
        CounterSet *set;                            /* NULL: it is closed, which is to be told */
        size_t event;                               /* index in the set's group */
        bool announced;                             /* InterfacesAdded was sent */
        bool told_idle;                             /* somebody was told that it is idle */
        bool queued;                                /* in counters->changed */
        unsigned changes;                           /* COUNTER_CHANGED_ bits */
        sd_bus_message *kept[COUNTER_KEPT_SIGNALS]; /* counter-signals.c; NULL: not kept */
        LIST_HEAD(, CounterListener) listeners;
        LIST_ENTRY(Counter) members;
        TAILQ_ENTRY(Counter) changed;
};

/* For other folders: calls closed when a counter is closed. */
struct CounterListener {
        void (*closed)(CounterListener *l, Counter *c); /* l is not in the list any more */
        LIST_ENTRY(CounterListener) listeners;
};

TAILQ_HEAD(CounterList, Counter);
LIST_HEAD(CounterSetList, CounterSet);
TAILQ_HEAD(CounterEndings, CounterSet);
TAILQ_HEAD(ClosingGroups, ClosingGroup);

struct Counters {
        Context *context;
        Holds *holds;
        Objects objects;
        Counter *recent[COUNTERS_RECENT]; /* created or found last, by id */
        struct CounterSetList sets;
        struct CounterSetList pinned; /* those that are pinned on CPUs, by counter-unpin.c */
        Turn unpin;
        struct CounterList changed;   /* with changes to be signalled */
        size_t n_buried;              /* closed ones among them */
        size_t n_kept;                /* signals that counters keep */
        uint64_t instant;             /* the number of the last one, see counters_now() */
        struct CounterEndings ending; /* sets, by counter-end.c */
        struct ClosingGroups closing; /* of sets that have ended */
        Turn end;                     /* closes some of both */
        sd_event_source *announce;
        sd_event_source *retry; /* retries counters that could not be opened again */
        sd_event_source *gate;  /* counter-gate.c */
        uint64_t gate_usec;     /* when it is due; UINT64_MAX: it is not */
        uint64_t n_limited;     /* stored descriptors that KeptDescriptors= limits */
        size_t n_by_hold; /* sets that are stored beyond that, because their user holds counters */
        bool unkept_changed; /* and is not saved yet */
        bool unkept_logged;  /* it was logged that there are any */
};

static inline Counter *counter_of_object(Object *o) {
        return container_of(o, Counter, object);
}

Counter *counter_find(Counters *counters, uint64_t id); /* NULL: there is none */
Counter *counter_find_path(Counters *counters, const char *path);

const char *counter_state(const Counter *c);

/* l must stay valid until it is called or removed. */
void counter_listen(Counter *c, CounterListener *l);

/* Soon retries counters that are in error, or may get into it. */
void counters_retry_soon(Counters *counters);

/* The lowest number of its counters, under which it is stored: no number is used twice. */
uint64_t counter_set_number(const CounterSet *set);

/* Whether the set is closed because it has yielded. */
bool counter_set_is_closed(const CounterSet *set);

/* Opens what is not open and has not yielded, as groups_open() does. */
int counter_sets_open(CounterSet *const *sets, size_t n, Refusal *why);
