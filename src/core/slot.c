/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slot.h"

#include <string.h>

void slot_table_done(SlotTable *t) {
        for (size_t i = 0; i < t->n_pmus; i++) {
                for (size_t word = 0; word < t->pmus[i].n_chunks; word++)
                        free(t->pmus[i].chunks[word]);
                free(t->pmus[i].chunks);
        }
        free(t->pmus);
        *t = (SlotTable){};
}

int slot_table_reserve_pmu(SlotTable *t, unsigned pmu) {
        size_t n = (size_t) pmu + 1;
        SlotPmu *pmus;

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

/* Slots are never moved: queues point into them. */
static SlotChunk *chunk_new(const SlotPmu *p) {
        SlotChunk *chunk = calloc(1, sizeof(*chunk));

        if (!chunk)
                return NULL;
        chunk->capacity = p->capacity;
        chunk->fixed = p->fixed;
        for (unsigned i = 0; i < CHUNK_SLOTS; i++) {
                chunk->slots[i].chunk = chunk;
                chunk->slots[i].bit = UINT64_C(1) << i;
                TAILQ_INIT(&chunk->slots[i].waiting);
        }
        return chunk;
}

static int pmu_reserve(SlotPmu *p, size_t word) {
        if (word >= p->n_chunks) {
                SlotChunk **chunks = reallocarray(p->chunks, word + 1, sizeof(*chunks));

                if (!chunks)
                        return -ENOMEM;
                memset(chunks + p->n_chunks, 0, (word + 1 - p->n_chunks) * sizeof(*chunks));
                p->chunks = chunks;
                p->n_chunks = word + 1;
        }
        if (!p->chunks[word])
                p->chunks[word] = chunk_new(p);
        return p->chunks[word] ? 0 : -ENOMEM;
}

int slot_table_reserve(SlotTable *t, const Scope *scope) {
        for (size_t i = 0; i < scope->n_parts; i++) {
                const ScopePart *part = &scope->parts[i];
                int r = slot_table_reserve_pmu(t, part->pmu);

                for (size_t word = 0; r == 0 && word < part->cpus.n_words; word++)
                        if (part->cpus.words[word])
                                r = pmu_reserve(&t->pmus[part->pmu], word);
                if (r < 0)
                        return r;
        }
        return 0;
}

void slot_table_capacity(SlotTable *t, unsigned pmu, uint64_t counters) {
        SlotPmu *p = &t->pmus[pmu];

        p->capacity = counters;
        for (size_t word = 0; word < p->n_chunks; word++)
                if (p->chunks[word])
                        p->chunks[word]->capacity = counters;
}

void slot_table_fixed(SlotTable *t, unsigned pmu, uint32_t fixed) {
        SlotPmu *p = &t->pmus[pmu];

        p->fixed = fixed;
        for (size_t word = 0; word < p->n_chunks; word++)
                if (p->chunks[word])
                        p->chunks[word]->fixed = fixed;
}

Slot *slot_walk_next(SlotWalk *w) {
        for (; w->part < w->scope->n_parts; w->part++, w->cpu = 0) {
                const ScopePart *part = &w->scope->parts[w->part];
                int cpu;

                while ((cpu = cpuset_next(&part->cpus, w->cpu)) >= 0) {
                        SlotChunk *chunk =
                                slot_table_chunk(w->table, part->pmu, (unsigned) cpu / CHUNK_SLOTS);

                        w->cpu = (unsigned) cpu + 1;
                        if (chunk)
                                return &chunk->slots[(unsigned) cpu % CHUNK_SLOTS];
                }
        }
        return NULL;
}

bool slot_fits(const Slot *slot, const LedgerHold *h) {
        uint64_t capacity = slot->chunk->capacity;

        if (h->exclusive)
                return slot->n_active == 0;
        if (slot->n_exclusive > 0)
                return false;
        /* sum 0: the capacity has shrunk since the request, and waiting longer would not help */
        return h->counters == 0 || slot->sum == 0 || capacity == SLOT_UNKNOWN ||
               slot->sum + h->counters <= capacity;
}

bool slot_has_too_few(const Slot *slot, const LedgerHold *h) {
        uint64_t capacity = slot->chunk->capacity;

        return !ledger_hold_is_full(h) && capacity != SLOT_UNKNOWN && h->counters > capacity;
}

static void slot_note_demand(Slot *slot) {
        const bool demand[_SLOT_DEMAND_MAX] = {
                [SLOT_FULL] = slot->n_full > 0,
                [SLOT_EXCLUSIVE] = slot->n_exclusive > 0,
                [SLOT_PARTIAL] = slot->n_active > slot->n_full,
        };

        for (int i = 0; i < _SLOT_DEMAND_MAX; i++) {
                slot->chunk->demand[i] &= ~slot->bit;
                if (demand[i])
                        slot->chunk->demand[i] |= slot->bit;
        }
}

void slot_enter(Slot *slot, const LedgerHold *h) {
        slot->n_active++;
        slot->n_full += ledger_hold_is_full(h);
        slot->n_exclusive += h->exclusive;
        slot->sum += ledger_hold_is_full(h) ? 0 : h->counters;
        slot_note_demand(slot);
}

void slot_leave(Slot *slot, const LedgerHold *h) {
        slot->n_active--;
        slot->n_full -= ledger_hold_is_full(h);
        slot->n_exclusive -= h->exclusive;
        slot->sum -= ledger_hold_is_full(h) ? 0 : h->counters;
        if (slot->sum == 0)
                slot->extra = 0;
        slot_note_demand(slot);
}

void slot_queue(Slot *slot, SlotEntry *e) {
        SlotEntry *last = TAILQ_LAST(&slot->waiting, SlotQueue);

        e->slot = slot;
        e->number = last ? last->number + 1 : 0;
        TAILQ_INSERT_TAIL(&slot->waiting, e, queue);
}

void slot_unqueue(SlotEntry *e) {
        struct SlotQueue *waiting = &e->slot->waiting;

        if (e != TAILQ_FIRST(waiting) && e != TAILQ_LAST(waiting, SlotQueue))
                e->slot->gaps = true;
        TAILQ_REMOVE(waiting, e, queue);
}

static void slot_number_queue(Slot *slot) {
        SlotEntry *e;
        uint64_t number = 0;

        TAILQ_FOREACH (e, &slot->waiting, queue)
                e->number = number++;
        slot->gaps = false;
}

size_t slot_position(const SlotEntry *e) {
        if (e->slot->gaps)
                slot_number_queue(e->slot);
        return e->number - TAILQ_FIRST(&e->slot->waiting)->number + 1;
}
