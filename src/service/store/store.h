/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What outlives this process: the state of every object and its descriptors, in systemd's
 * descriptor store (sd_notify(3), FDSTORE=1).
 *
 * State is a log in a memfd (statelog.h), so writing it down is a copy in memory, and whatever the
 * process had written when it was killed is there afterwards. Descriptors are in shelves (shelf.h):
 * sockets that carry many objects' descriptors in their queues, for the store is quadratic in
 * PID 1.
 *
 * The order is always the same: first the descriptors (store_keep()), then the record that says
 * what they are (store_save()), then whoever is concerned is told. The record is the one that
 * counts: descriptors that came after it, or before, are those of a step that was never taken or is
 * over.
 *
 * A restart reads the whole of it, makes the objects anew and writes them down in a new generation;
 * until that is complete the one before stays as it is. So it does not matter when the service is
 * killed.
 *
 * Run without a descriptor store, all of this does nothing, which is said once.
 */

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "core/pack.h"
#include "service/store/fd-queue.h"

typedef struct Store Store;
typedef struct StoreItem StoreItem;
typedef struct StoreRecord StoreRecord;

/* Written down as numbers: never change one, never use one again. */
typedef enum StoreKind {
        STORE_HOST = 1,     /* the bus, CPUs, PMUs: one, number 1 */
        STORE_HOLD = 2,     /* by number of the object; so do those that follow */
        STORE_COUNTERS = 3, /* a counter set: number of its first counter */
        STORE_SAMPLER = 4,
        STORE_MONITOR = 5,
        STORE_ISSUED_EVENTS = 6, /* by uid */
        STORE_BRIDGE = 7,        /* by the place in a table of bridges that only grows */
        STORE_BLOCKED = 8,       /* clients that block their samplers: one, number 1 */
} StoreKind;

/* Part of the object that is kept; all zero: it is not (yet). */
struct StoreItem {
        Store *store;
        StoreKind kind;
        uint64_t id;

        /* store.c's own */
        uint32_t version;     /* of the descriptors kept last */
        size_t n_fds;         /* likewise */
        uint64_t record_copy; /* where it will be */
        uint64_t record;      /* where its record is in the log; 0: nowhere */
        struct FdParts parts; /* of this version, and until it is saved of the one before */
        bool lost;            /* could not be kept: not before store_keep() can */
        LIST_ENTRY(StoreItem) items;
};

/* What an earlier run has left of an object. */
struct StoreRecord {
        StoreKind kind;
        uint64_t id;
        Unpack state;
        size_t n_fds;
        int *fds; /* whoever takes one puts -1 in its place */
        uint32_t version;
        uint64_t place; /* in the log, which tells the later from the earlier */
        bool left_out;
};

/* How the descriptors of an object go when they are not kept any more. */
typedef enum StoreUrgency {
        STORE_SOON,   /* within a turn of the loop, or a few */
        STORE_SCARCE, /* a counter is free only when they are gone: those go first */
} StoreUrgency;

/* Takes over what systemd has for us. Never NULL on success, with a store or without. Nothing may
 * be kept or saved before; the records are there until store_commit(). */
int store_new(sd_event *event, Store **ret);
Store *store_free(Store *s); /* what is kept stays with systemd */
DEFINE_CLEANUP(Store *, store_free)

/* The records of an earlier run, of one kind in the order of their ids: *place is 0 at first. */
StoreRecord *store_next(Store *s, StoreKind kind, size_t *place);

/* All that is to go on is kept anew: what the earlier run has left is dropped. */
void store_commit(Store *s);

void store_enter(Store *s, StoreItem *item, StoreKind kind, uint64_t id);

/* These descriptors instead of those before. Those stay good until store_save(), and go then. */
void store_keep(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency);

/* What is kept in between goes together, for much less than one after the other costs, and must not
 * be saved before store_ship(). */
void store_gather(Store *s);
void store_ship(Store *s);

/* From now on this is what is known of it. */
void store_save(StoreItem *item, const Pack *state);

/* The object is no more. An item that was never entered: nothing happens. */
void store_leave(StoreItem *item);

/* Descriptors that are not kept any more are closed now: to be called where that has to be so,
 * before counters are measured or opened. */
void store_settle(Store *s);

/* An empty buffer for store_save(), to be used at once. */
Pack *store_pack(Store *s);

/* Whether anything is kept at all. */
bool store_works(const Store *s);

/* How many descriptors are kept. */
size_t store_n_descriptors(const Store *s);
