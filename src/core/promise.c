/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "promise.h"

static const Slot *promise_slot(const Ledger *l, unsigned pmu, unsigned cpu) {
        const SlotChunk *chunk = slot_table_chunk(&l->slots, pmu, cpu / CHUNK_SLOTS);

        return chunk ? &chunk->slots[cpu % CHUNK_SLOTS] : NULL;
}

static unsigned promise_general(uint64_t n) {
        return (unsigned) MIN(n, UINT32_MAX);
}

static Shape promise_whole(const Ledger *l, unsigned pmu) {
        const SlotPmu *p = pmu < l->slots.n_pmus ? &l->slots.pmus[pmu] : NULL;

        return p ? (Shape){ .general = promise_general(p->capacity), .fixed = p->fixed }
                 : SHAPE_NULL;
}

static Shape promise_by_number(const Slot *slot) {
        return (Shape){ .general = promise_general(slot ? slot->sum : 0) };
}

Shape promise_of(const Ledger *l, const LedgerHold *h, unsigned pmu, unsigned cpu) {
        if (!ledger_hold_is_full(h))
                return (Shape){ .general = h->counters };
        return shape_without(promise_whole(l, pmu), promise_by_number(promise_slot(l, pmu, cpu)));
}

Shape promise_must_be_free(const Ledger *l, unsigned pmu, unsigned cpu, Shape opened) {
        const Slot *slot = promise_slot(l, pmu, cpu);

        return shape_without(
                slot && slot->n_full > 0 ? promise_whole(l, pmu) : promise_by_number(slot), opened);
}
