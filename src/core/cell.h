/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The cells of the ledger: what the active holds demand of one PMU on one CPU, and who waits for
 * it.
 */

#include <sys/queue.h>

#include "scope.h"

typedef struct Cell Cell;
typedef struct CellChunk CellChunk;
typedef struct CellEntry CellEntry;
typedef struct CellPmu CellPmu;
typedef struct CellTable CellTable;
typedef struct CellWalk CellWalk;
typedef struct LedgerHold LedgerHold;

/* What active holds demand of a cell. */
typedef enum CellDemand {
        CELL_FULL,      /* all counters: an exclusive hold, or a shared one with counters 0 */
        CELL_EXCLUSIVE, /* all counters, for one hold alone */
        CELL_PARTIAL,   /* a number of them */
        _CELL_DEMAND_MAX,
} CellDemand;

#define CELL_UNKNOWN   UINT64_C(0)
#define CELL_UNLIMITED UINT64_MAX
#define CHUNK_CELLS    64u /* as many as CPUs in a word of CpuSet */

TAILQ_HEAD(CellQueue, CellEntry);

struct Cell {
        CellChunk *chunk;
        uint64_t bit; /* its own in the chunk's masks */
        size_t n_active;
        size_t n_full;      /* active holds that demand all counters */
        size_t n_exclusive; /* likewise, alone: 0 or 1 */
        uint64_t sum;       /* counters promised to the other active ones */
        uint64_t extra;     /* more that has to yield for them, see ledger_set_extra() */
        uint64_t kept;      /* scratch of plan_compute() */
        struct CellQueue waiting;
        bool gaps; /* the numbers in the queue are not consecutive any more */
};

/* The cells of CPUs that lie side by side. */
struct CellChunk {
        uint64_t demand[_CELL_DEMAND_MAX]; /* by cell: is there any */
        uint64_t capacity;                 /* counters of each */
        Cell cells[CHUNK_CELLS];
};

struct CellPmu {
        uint64_t capacity; /* of its cells, CELL_UNKNOWN or CELL_UNLIMITED */
        size_t n_chunks;
        CellChunk **chunks; /* NULL where nobody has held anything yet */
};

/* All zero is an empty one. */
struct CellTable {
        size_t n_pmus;
        CellPmu *pmus;
};

/* A waiting hold on one of its cells. */
struct CellEntry {
        LedgerHold *hold;
        Cell *cell;
        TAILQ_ENTRY(CellEntry) queue;
        uint64_t number; /* grows along the queue */
        bool ready;      /* first here, and fits */
};

/* Over the cells of a scope; those that the table has not are left out. */
struct CellWalk {
        const CellTable *table;
        const Scope *scope;
        size_t part; /* of the cell given last */
        unsigned cpu;
};

#define CELL_FOREACH(cell, w) for (Cell * cell; (cell = cell_walk_next(&(w)));)

void cell_table_done(CellTable *t);
int cell_table_reserve_pmu(CellTable *t, unsigned pmu);   /* -ENOMEM */
int cell_table_reserve(CellTable *t, const Scope *scope); /* -ENOMEM */
void cell_table_capacity(CellTable *t, unsigned pmu, uint64_t counters);

/* NULL where nobody has held anything yet; word is that of a CpuSet. */
static inline CellChunk *cell_table_chunk(const CellTable *t, unsigned pmu, size_t word) {
        return pmu < t->n_pmus && word < t->pmus[pmu].n_chunks ? t->pmus[pmu].chunks[word] : NULL;
}

Cell *cell_walk_next(CellWalk *w);

/* Whether a hold can be active there beside those that are, and whether it ever can. */
bool cell_fits(const Cell *cell, const LedgerHold *h);
bool cell_has_too_few(const Cell *cell, const LedgerHold *h);

void cell_enter(Cell *cell, const LedgerHold *h);
void cell_leave(Cell *cell, const LedgerHold *h);

void cell_queue(Cell *cell, CellEntry *e);
void cell_unqueue(CellEntry *e);

/* Place in the queue, from 1. */
size_t cell_position(const CellEntry *e);
