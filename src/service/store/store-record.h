/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What an earlier run has left of an object.
 */

#include "core/pack.h"

typedef struct StoreRecord StoreRecord;

/* Written to the store: never renumber, never use a number again. */
typedef enum StoreKind {
        STORE_HOST = 1,     /* the bus, CPUs, PMUs: one, number 1 */
        STORE_HOLD = 2,     /* by number of the object, like the next ones */
        STORE_COUNTERS = 3, /* a counter set: number of its first counter */
        STORE_SAMPLER = 4,
        STORE_MONITOR = 5,
        STORE_ISSUED_EVENTS = 6, /* by uid */
        STORE_BRIDGE = 7,        /* by the place in a table of bridges that only grows */
        STORE_BLOCKED = 8,       /* clients that block their samplers: one, number 1 */
        STORE_BROKER = 9,
} StoreKind;

struct StoreRecord {
        StoreKind kind;
        uint64_t id;
        Unpack state;
        size_t n_fds;
        int *fds; /* callers put -1 in the place of one that they take over */

        /* restore.c's own */
        uint32_t version; /* of the descriptors */
        uint64_t place;   /* in the log: of two records of an object the later one counts */
        bool more;        /* it continues the one before it */
        bool left_out;    /* not restored */
        uint8_t *joined;  /* the state, where several records make it up */
};

/* For qsort(): by kind and id; and of the same object by place. */
int store_record_compare(const void *a, const void *b);
int store_record_compare_places(const void *a, const void *b);

/* Of n records of one object, in the order of their places, one stays, with what continues it, or
 * none. The others are left out. -ENOMEM. */
int store_records_merge(StoreRecord *records, size_t n);

/* Whether all descriptors are there. */
bool store_record_is_whole(const StoreRecord *r);

void store_record_done(StoreRecord *r); /* closes those that nobody took over */
