/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What outlives this process: the state of every object and its descriptors, in systemd's
 * descriptor store (sd_notify(3), FDSTORE=1).
 *
 * State is a log of records in a memfd (statelog.h): to save is to copy in memory, and what was
 * saved is there however the process ends. Descriptors are in queues (fd-queue.h), each a socket
 * with those of many objects: PID 1 takes a time that is quadratic in the number of descriptors
 * that it stores.
 *
 * A change is stored in this order: the new descriptors (store_keep()), the record of the object
 * (store_save()), and only then is anybody told. The record names the version of its descriptors;
 * those of other versions are ignored when it is restored. So a process that is killed between two
 * steps leaves either the old state or the new one.
 *
 * What is added to an object can be stored alone (store_add()), in the same order.
 *
 * A restart reads it all, makes the objects anew and stores them in a new generation. The
 * generation before stays unchanged until the new one is complete, so a restart may be killed as
 * well.
 *
 * State with which run after run crashes is set aside (set-aside.h): restore_watch_end() is called
 * once the service has restored everything.
 *
 * Without a descriptor store nothing is kept, which is logged once.
 */

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "service/store/fd-queue.h"
#include "service/store/store-record.h"

typedef struct Store Store;
typedef struct StoreItem StoreItem;
typedef struct StoreMore StoreMore;

/* Embedded in each object that is kept. All zero: it is not entered. */
struct StoreItem {
        Store *store;
        StoreKind kind;
        uint64_t id;
        void (*again)(StoreItem *item);

        /* store.c's own */
        uint32_t version;             /* of the descriptors kept last */
        size_t n_fds;                 /* likewise */
        uint64_t record;              /* the place of its record in the log; 0: it has none */
        uint64_t record_copy;         /* the new place, while the log is copied */
        TAILQ_HEAD(, StoreMore) more; /* records that continue it */
        size_t n_more;
        struct FdParts parts; /* of this version, and until it is saved of the one before */
        bool lost;            /* could not be kept: nothing is saved before the next store_keep() */
        LIST_ENTRY(StoreItem) items;
};

/* When descriptors are closed that are not kept any more. */
typedef enum StoreUrgency {
        STORE_SOON,   /* within milliseconds, from the event loop */
        STORE_SCARCE, /* likewise, or at once by store_settle(): events, which take up hardware
                         counters */
} StoreUrgency;

/* Takes over what systemd has for us. On success there is a Store even without a descriptor store.
 * Records can be read until store_commit(). */
int store_new(sd_event *event, Store **ret);
Store *store_free(Store *s); /* systemd keeps what is kept; returns NULL */
DEFINE_CLEANUP(Store *, store_free)

/* The records of an earlier run, of one kind in the order of their ids: *place is 0 at first. */
StoreRecord *store_next(Store *s, StoreKind kind, size_t *place);

/* Calls restore for each of them. What it fails with is said in the journal: "WHAT N is lost in the
 * restart"; -ENOMEM ends it and is returned. -ESTALE means that a client is not on this bus. */
int store_restore_each(Store *s, StoreKind kind, const char *what,
                       int (*restore)(void *userdata, StoreRecord *record), void *userdata);

/* Every object that goes on has been kept and saved anew: drops what the earlier run has left. */
void store_commit(Store *s);

/* again keeps and saves the item once more: store_commit() calls it where there was no room beside
 * the earlier run's descriptors. NULL: the item has no descriptors, or its owner sees to that. */
void store_enter(Store *s, StoreItem *item, StoreKind kind, uint64_t id,
                 void (*again)(StoreItem *item));

/* Keeps copies of these descriptors instead of those before, which are dropped by store_save(). */
void store_keep(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency);

/* What is kept between the two is sent in shared messages, which costs much less than one after the
 * other. It must not be saved before store_ship(). */
void store_gather(Store *s);
void store_ship(Store *s);

/* Replaces the record of the object: this state, with the descriptors kept last. */
void store_save(StoreItem *item, const Pack *state);

/* Stores more descriptors and more state beside those that were saved last; a reader finds the
 * state of both as one. Whoever adds often saves anew from time to time (item->n_more): each
 * addition is a message and a record. */
void store_add(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency,
               const Pack *state);

/* Drops the record and the descriptors. Does nothing where the item was not entered. */
void store_leave(StoreItem *item);

/* Closes STORE_SCARCE descriptors that are not kept any more. To be called before counters are
 * measured or opened. */
void store_settle(Store *s);

/* An empty buffer for the next store_save() or store_add(). */
Pack *store_pack(Store *s);

/* False: there is no descriptor store. */
bool store_works(const Store *s);
