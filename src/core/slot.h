/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The slots of the ledger: what the active holds demand of one PMU on one CPU, and the queue of the
 * holds that wait for it.
 */

#include "core/ledger-hold.h"

typedef struct Slot Slot;
typedef struct SlotChunk SlotChunk;
typedef struct SlotPmu SlotPmu;
typedef struct SlotTable SlotTable;
typedef struct SlotWalk SlotWalk;

/* What active holds demand of a slot. */
typedef enum SlotDemand {
        SLOT_FULL,      /* all counters: an exclusive hold, or a shared one with counters 0 */
        SLOT_EXCLUSIVE, /* all counters, for one hold alone */
        SLOT_PARTIAL,   /* a number of them */
        _SLOT_DEMAND_MAX,
} SlotDemand;

#define SLOT_UNKNOWN   UINT64_C(0)
#define SLOT_UNLIMITED UINT64_MAX
#define CHUNK_SLOTS    64u /* as many as CPUs in a word of CpuSet */

TAILQ_HEAD(SlotQueue, SlotEntry);

struct Slot {
        SlotChunk *chunk;
        uint64_t bit; /* its own in the chunk's masks */
        size_t n_active;
        size_t n_full;       /* active holds that demand all counters */
        size_t n_exclusive;  /* active exclusive holds: 0 or 1 */
        uint64_t sum;        /* counters promised to the active holds that are not full */
        uint64_t extra;      /* ledger_add_missing(); 0 where no number is promised */
        uint64_t kept;       /* of the last plan_compute(), where a number is promised: general
                              * counters of the monitors that stay */
        uint32_t kept_fixed; /* likewise: fixed ones, and those that do not exist */
        struct SlotQueue waiting;
        bool gaps; /* the numbers in the queue are no longer consecutive */
};

/* The slots of CPUs that lie side by side. */
struct SlotChunk {
        uint64_t demand[_SLOT_DEMAND_MAX]; /* bit of a slot: some active hold demands this there */
        uint64_t capacity;                 /* general counters of each */
        uint32_t fixed;                    /* fixed counters of each */
        Slot slots[CHUNK_SLOTS];
};

struct SlotPmu {
        uint64_t capacity; /* of its slots, SLOT_UNKNOWN or SLOT_UNLIMITED */
        uint32_t fixed;
        size_t n_chunks;
        SlotChunk **chunks; /* NULL where nothing was held yet */
};

/* All zero: empty. */
struct SlotTable {
        size_t n_pmus;
        SlotPmu *pmus;
};

/* A waiting hold on one of its slots. */
struct SlotEntry {
        LedgerHold *hold;
        Slot *slot;
        TAILQ_ENTRY(SlotEntry) queue;
        uint64_t number; /* grows along the queue */
        bool ready;      /* first here, and fits */
};

/* Iterates over the slots of a scope; slots that the table does not have are skipped. */
struct SlotWalk {
        const SlotTable *table;
        const Scope *scope;
        size_t part; /* of the slot given last */
        unsigned cpu;
};

#define SLOT_FOREACH(slot, w) for (Slot * slot; (slot = slot_walk_next(&(w)));)

void slot_table_done(SlotTable *t);
int slot_table_reserve_pmu(SlotTable *t, unsigned pmu);   /* -ENOMEM */
int slot_table_reserve(SlotTable *t, const Scope *scope); /* -ENOMEM */
void slot_table_capacity(SlotTable *t, unsigned pmu, uint64_t counters);
void slot_table_fixed(SlotTable *t, unsigned pmu, uint32_t fixed);

/* word as in CpuSet. NULL where nothing was held yet. */
static inline SlotChunk *slot_table_chunk(const SlotTable *t, unsigned pmu, size_t word) {
        return pmu < t->n_pmus && word < t->pmus[pmu].n_chunks ? t->pmus[pmu].chunks[word] : NULL;
}

Slot *slot_walk_next(SlotWalk *w);

/* Whether the hold can be active beside those that are; whether it never can. */
bool slot_fits(const Slot *slot, const LedgerHold *h);
bool slot_has_too_few(const Slot *slot, const LedgerHold *h);

void slot_enter(Slot *slot, const LedgerHold *h);
void slot_leave(Slot *slot, const LedgerHold *h);

void slot_queue(Slot *slot, SlotEntry *e);
void slot_unqueue(SlotEntry *e);

/* Place in the queue, from 1. */
size_t slot_position(const SlotEntry *e);
