/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the service has done since the machine booted: the Manager's property Totals. The numbers
 * are in a file of the preserved runtime directory that is mapped into memory: they cost no system
 * call, a crash loses none, and the next run goes on from them.
 */

#include "core/util.h"

typedef struct Totals Totals;
typedef struct TotalsLevel TotalsLevel;
typedef struct TotalsPage TotalsPage;

/* Places in the file: only ever append. */
typedef enum Total {
        TOTAL_HOLDS_RELEASED, /* in the order of HoldResult */
        TOTAL_HOLDS_LEASE_CLOSED,
        TOTAL_HOLDS_EXPIRED,
        TOTAL_HOLDS_TIMED_OUT,
        TOTAL_HOLDS_OBSTRUCTED,
        TOTAL_HOLDS_REVOKED,
        TOTAL_GRANTS_CONFIRMED,
        TOTAL_GRANTS_UNCONFIRMED,
        TOTAL_LATENCY_USEC,
        TOTAL_HELD_USEC,
        TOTAL_YIELDED_USEC,
        TOTAL_COUNTERS_OPENED,
        TOTAL_EVENTS_OPENED,
        TOTAL_DENIALS,
        TOTAL_TICKS,
        TOTAL_TICKS_MISSED,
        TOTAL_STARTS,
        _TOTAL_MAX,
} Total;

/* How many of a kind there are now; each adds to a total while it lasts. */
typedef enum Level {
        LEVEL_HELD,    /* granted holds: TOTAL_HELD_USEC */
        LEVEL_YIELDED, /* monitors that have yielded: TOTAL_YIELDED_USEC */
        _LEVEL_MAX,
} Level;

struct TotalsLevel {
        uint64_t n;
        uint64_t since_usec; /* CLOCK_BOOTTIME: n has been so since then, and is added up to then */
};

struct TotalsPage {
        uint64_t version;
        TotalsLevel levels[_LEVEL_MAX];
        uint64_t values[_TOTAL_MAX];
};

struct Totals {
        TotalsPage *file; /* NULL: there is none, and own has the totals */
        TotalsPage own;
        int64_t n[_LEVEL_MAX]; /* of this run */
};

#define TOTALS_NULL ((Totals){})

/* directory may be NULL. -errno: there is no usable file; totals start from 0 and end with this
 * process. The times of the last run's holds and yields go on until totals_settle(). */
int totals_open(Totals *t, const char *directory);

/* What is held and yielded is added up to now: if the service is stopped it ends with it. */
void totals_close(Totals *t);

void totals_add(Totals *t, Total total, uint64_t n);

/* There are `change` more of them from now on. */
void totals_level(Totals *t, Level level, int change);

/* All that outlives a restart is back. A level of the last run that is at 0 now ended with it. */
void totals_settle(Totals *t);

/* As of now, with the time of what is held and yielded at present. That is added up to now, so that
 * no later value is lower, however the service ends. */
uint64_t totals_value(Totals *t, Total total);

/* As in the property. */
const char *total_name(Total total);
