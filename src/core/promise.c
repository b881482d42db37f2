/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "promise.h"

static const Slot *promise_slot(const Ledger *l, unsigned pmu, unsigned cpu) {
        const SlotChunk *chunk = slot_table_chunk(&l->slots, pmu, cpu / CHUNK_SLOTS);

        return chunk ? &chunk->slots[cpu % CHUNK_SLOTS] : NULL;
}

static Shape promise_by_number(const Slot *slot) {
        return (Shape){ .general = slot ? (unsigned) MIN(slot->sum, UINT32_MAX) : 0 };
}

Shape promise_of(const Ledger *l, const LedgerHold *h, unsigned pmu, unsigned cpu, Shape whole) {
        if (!ledger_hold_is_full(h))
                return (Shape){ .general = h->counters };
        return shape_without(whole, promise_by_number(promise_slot(l, pmu, cpu)));
}

Shape promise_must_be_free(const Ledger *l, unsigned pmu, unsigned cpu, Shape whole, Shape opened) {
        const Slot *slot = promise_slot(l, pmu, cpu);

        return shape_without(slot && slot->n_full > 0 ? whole : promise_by_number(slot), opened);
}
