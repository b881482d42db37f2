/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cell.h"

#include <string.h>

#include "ledger.h"

void cell_table_done(CellTable *t) {
        for (size_t i = 0; i < t->n_pmus; i++) {
                for (size_t word = 0; word < t->pmus[i].n_chunks; word++)
                        free(t->pmus[i].chunks[word]);
                free(t->pmus[i].chunks);
        }
        free(t->pmus);
        *t = (CellTable){};
}

int cell_table_reserve_pmu(CellTable *t, unsigned pmu) {
        size_t n = (size_t) pmu + 1;
        CellPmu *pmus;

        if (n <= t->n_pmus)
                return 0;
        pmus = reallocarray(t->pmus, n, sizeof(*pmus));
        if (!pmus)
                return -ENOMEM;
        memset(pmus + t->n_pmus, 0, (n - t->n_pmus) * sizeof(*pmus));
        t->pmus = pmus;
        t->n_pmus = n;
        return 0;
}

/* Cells are never moved: queues point into them. */
static CellChunk *chunk_new(uint64_t capacity) {
        CellChunk *chunk = calloc(1, sizeof(*chunk));

        if (!chunk)
                return NULL;
        chunk->capacity = capacity;
        for (unsigned i = 0; i < CHUNK_CELLS; i++) {
                chunk->cells[i].chunk = chunk;
                chunk->cells[i].bit = UINT64_C(1) << i;
                TAILQ_INIT(&chunk->cells[i].waiting);
        }
        return chunk;
}

static int pmu_reserve(CellPmu *p, size_t word) {
        if (word >= p->n_chunks) {
                CellChunk **chunks = reallocarray(p->chunks, word + 1, sizeof(*chunks));

                if (!chunks)
                        return -ENOMEM;
                memset(chunks + p->n_chunks, 0, (word + 1 - p->n_chunks) * sizeof(*chunks));
                p->chunks = chunks;
                p->n_chunks = word + 1;
        }
        if (!p->chunks[word])
                p->chunks[word] = chunk_new(p->capacity);
        return p->chunks[word] ? 0 : -ENOMEM;
}

int cell_table_reserve(CellTable *t, const Scope *scope) {
        for (size_t i = 0; i < scope->n_parts; i++) {
                const ScopePart *part = &scope->parts[i];
                int r = cell_table_reserve_pmu(t, part->pmu);

                for (size_t word = 0; r == 0 && word < part->cpus.n_words; word++)
                        if (part->cpus.words[word])
                                r = pmu_reserve(&t->pmus[part->pmu], word);
                if (r < 0)
                        return r;
        }
        return 0;
}

void cell_table_capacity(CellTable *t, unsigned pmu, uint64_t counters) {
        CellPmu *p = &t->pmus[pmu];

        p->capacity = counters;
        for (size_t word = 0; word < p->n_chunks; word++)
                if (p->chunks[word])
                        p->chunks[word]->capacity = counters;
}

Cell *cell_walk_next(CellWalk *w) {
        for (; w->part < w->scope->n_parts; w->part++, w->cpu = 0) {
                const ScopePart *part = &w->scope->parts[w->part];
                int cpu;

                while ((cpu = cpuset_next(&part->cpus, w->cpu)) >= 0) {
                        CellChunk *chunk =
                                cell_table_chunk(w->table, part->pmu, (unsigned) cpu / CHUNK_CELLS);

                        w->cpu = (unsigned) cpu + 1;
                        if (chunk)
                                return &chunk->cells[(unsigned) cpu % CHUNK_CELLS];
                }
        }
        return NULL;
}

bool cell_fits(const Cell *cell, const LedgerHold *h) {
        uint64_t capacity = cell->chunk->capacity;

        if (h->exclusive)
                return cell->n_active == 0;
        if (cell->n_exclusive > 0)
                return false;
        /* sum 0: the capacity has shrunk since it was asked for, and waiting on would not help */
        return h->counters == 0 || cell->sum == 0 || capacity == CELL_UNKNOWN ||
               cell->sum + h->counters <= capacity;
}

bool cell_has_too_few(const Cell *cell, const LedgerHold *h) {
        uint64_t capacity = cell->chunk->capacity;

        return !ledger_hold_is_full(h) && capacity != CELL_UNKNOWN && h->counters > capacity;
}

static void cell_note_demand(Cell *cell) {
        const bool demand[_CELL_DEMAND_MAX] = {
                [CELL_FULL] = cell->n_full > 0,
                [CELL_EXCLUSIVE] = cell->n_exclusive > 0,
                [CELL_PARTIAL] = cell->n_active > cell->n_full,
        };

        for (int i = 0; i < _CELL_DEMAND_MAX; i++) {
                cell->chunk->demand[i] &= ~cell->bit;
                if (demand[i])
                        cell->chunk->demand[i] |= cell->bit;
        }
}

void cell_enter(Cell *cell, const LedgerHold *h) {
        cell->n_active++;
        cell->n_full += ledger_hold_is_full(h);
        cell->n_exclusive += h->exclusive;
        cell->sum += ledger_hold_is_full(h) ? 0 : h->counters;
        cell_note_demand(cell);
}

void cell_leave(Cell *cell, const LedgerHold *h) {
        cell->n_active--;
        cell->n_full -= ledger_hold_is_full(h);
        cell->n_exclusive -= h->exclusive;
        cell->sum -= ledger_hold_is_full(h) ? 0 : h->counters;
        cell_note_demand(cell);
}

void cell_queue(Cell *cell, CellEntry *e) {
        CellEntry *last = TAILQ_LAST(&cell->waiting, CellQueue);

        e->cell = cell;
        e->number = last ? last->number + 1 : 0;
        TAILQ_INSERT_TAIL(&cell->waiting, e, queue);
}

void cell_unqueue(CellEntry *e) {
        struct CellQueue *waiting = &e->cell->waiting;

        if (e != TAILQ_FIRST(waiting) && e != TAILQ_LAST(waiting, CellQueue))
                e->cell->gaps = true;
        TAILQ_REMOVE(waiting, e, queue);
}

static void cell_number_queue(Cell *cell) {
        CellEntry *e;
        uint64_t number = 0;

        TAILQ_FOREACH (e, &cell->waiting, queue)
                e->number = number++;
        cell->gaps = false;
}

size_t cell_position(const CellEntry *e) {
        if (e->cell->gaps)
                cell_number_queue(e->cell);
        return e->number - TAILQ_FIRST(&e->cell->waiting)->number + 1;
}
