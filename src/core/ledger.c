/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger.h"

static SlotWalk ledger_walk(const Ledger *l, const LedgerHold *h) {
        return (SlotWalk){ .table = &l->slots, .scope = &h->scope };
}

void ledger_init(Ledger *l) {
        *l = (Ledger){ .next_seq = 1 };
        TAILQ_INIT(&l->holds);
}

void ledger_done(Ledger *l) {
        while (!TAILQ_EMPTY(&l->holds))
                ledger_remove(l, TAILQ_FIRST(&l->holds));
        slot_table_done(&l->slots);
}

int ledger_set_fixed(Ledger *l, unsigned pmu, uint32_t fixed) {
        int r = slot_table_reserve_pmu(&l->slots, pmu);

        if (r == 0)
                slot_table_fixed(&l->slots, pmu, fixed);
        return r;
}

/* Looks at the head of a slot's queue after something in the slot has changed. */
static void ledger_settle_slot(Ledger *l, Slot *slot) {
        SlotEntry *head = TAILQ_FIRST(&slot->waiting);
        LedgerHold *h;

        if (!head || head->ready == slot_fits(slot, head->hold))
                return;
        h = head->hold;
        if (h->n_ready == h->n_slots)
                prioq_remove(&l->ready, &h->ready);
        head->ready = !head->ready;
        h->n_ready += head->ready ? 1 : -1;
        if (h->n_ready == h->n_slots)
                prioq_put(&l->ready, &h->ready);
}

static void ledger_settle(Ledger *l, const LedgerHold *h) {
        SlotWalk w = ledger_walk(l, h);

        SLOT_FOREACH (slot, w)
                ledger_settle_slot(l, slot);
}

int ledger_set_capacity(Ledger *l, unsigned pmu, uint64_t counters) {
        LedgerHold *h;
        int r = slot_table_reserve_pmu(&l->slots, pmu);

        if (r < 0)
                return r;
        slot_table_capacity(&l->slots, pmu, counters);
        TAILQ_FOREACH (h, &l->holds, list)
                if (h->state == LEDGER_WAITING && scope_find(&h->scope, pmu))
                        ledger_settle(l, h);
        return 0;
}

static void hold_enter(Ledger *l, LedgerHold *h) {
        SlotWalk w = ledger_walk(l, h);

        SLOT_FOREACH (slot, w)
                slot_enter(slot, h);
        h->state = LEDGER_ACTIVE;
        l->n_active++;
        l->n_partial += !ledger_hold_is_full(h);
}

static void hold_leave(Ledger *l, LedgerHold *h) {
        SlotWalk w = ledger_walk(l, h);

        SLOT_FOREACH (slot, w)
                slot_leave(slot, h);
        l->n_active--;
        l->n_partial -= !ledger_hold_is_full(h);
}

static void hold_queue(Ledger *l, LedgerHold *h) {
        SlotWalk w = ledger_walk(l, h);
        SlotEntry *e = h->entries;

        SLOT_FOREACH (slot, w) {
                e->hold = h;
                slot_queue(slot, e++);
                ledger_settle_slot(l, slot);
        }
        h->state = LEDGER_WAITING;
        l->n_waiting++;
}

static void hold_unqueue(Ledger *l, LedgerHold *h) {
        if (h->n_ready == h->n_slots)
                prioq_remove(&l->ready, &h->ready);
        for (size_t i = 0; i < h->n_slots; i++)
                slot_unqueue(&h->entries[i]);
        free(TAKE_PTR(h->entries));
        h->n_ready = 0;
        l->n_waiting--;
}

/* 0 when it can be active at once, LEDGER_E_WAITS or, when it is new, LEDGER_E_TOO_MANY. */
static int hold_check(const Ledger *l, const LedgerHold *h, bool is_new, size_t *ret_n_slots) {
        SlotWalk w = ledger_walk(l, h);
        size_t n = 0;
        int r = 0;

        SLOT_FOREACH (slot, w) {
                if (is_new && slot_has_too_few(slot, h))
                        return LEDGER_E_TOO_MANY;
                if (!TAILQ_EMPTY(&slot->waiting) || !slot_fits(slot, h))
                        r = LEDGER_E_WAITS;
                n++;
        }
        *ret_n_slots = n;
        return r;
}

/* As hold_check() says. */
static int hold_put(Ledger *l, LedgerHold *h, int k, size_t n_slots) {
        _cleanup_free_ SlotEntry *entries = NULL;

        if (k == LEDGER_E_WAITS && !(entries = calloc(n_slots, sizeof(*entries))))
                return -ENOMEM;

        h->entries = TAKE_PTR(entries);
        h->n_slots = n_slots;
        h->n_ready = 0;
        h->seq = h->ready.key = l->next_seq++;
        TAILQ_INSERT_TAIL(&l->holds, h, list);
        if (k == LEDGER_E_WAITS)
                hold_queue(l, h);
        else
                hold_enter(l, h);
        return k;
}

int ledger_admit(Ledger *l, LedgerHold *h, bool may_wait) {
        size_t n_slots;
        int k, r;

        r = slot_table_reserve(&l->slots, &h->scope);
        if (r < 0)
                return r;
        k = hold_check(l, h, true, &n_slots);
        if (k == LEDGER_E_TOO_MANY)
                return k;
        if (k == LEDGER_E_WAITS && !may_wait)
                return LEDGER_E_WOULD_WAIT;
        return hold_put(l, h, k, n_slots);
}

int ledger_admit_again(Ledger *l, LedgerHold *h, bool active) {
        size_t n_slots;
        int k, r;

        r = slot_table_reserve(&l->slots, &h->scope);
        if (r < 0)
                return r;
        k = hold_check(l, h, false, &n_slots);
        return hold_put(l, h, active ? 0 : k, n_slots);
}

void ledger_remove(Ledger *l, LedgerHold *h) {
        if (h->state == LEDGER_NONE)
                return;
        if (h->state == LEDGER_WAITING)
                hold_unqueue(l, h);
        else
                hold_leave(l, h);
        h->state = LEDGER_NONE;
        TAILQ_REMOVE(&l->holds, h, list);
        ledger_settle(l, h);
}

LedgerHold *ledger_next(Ledger *l) {
        LedgerHold *h;

        if (!l->ready.first)
                return NULL;
        h = container_of(l->ready.first, LedgerHold, ready);
        hold_unqueue(l, h);
        hold_enter(l, h);
        ledger_settle(l, h);
        return h;
}

size_t ledger_position(const LedgerHold *h) {
        size_t worst = 0;

        if (h->state != LEDGER_WAITING)
                return 0;
        for (size_t i = 0; i < h->n_slots; i++)
                worst = MAX(worst, slot_position(&h->entries[i]));
        return worst;
}

bool ledger_is_first(const Ledger *l, const LedgerHold *h) {
        SlotWalk w = ledger_walk(l, h);
        size_t itself = h->state == LEDGER_ACTIVE;

        SLOT_FOREACH (slot, w)
                if (slot->n_active > itself)
                        return false;
        return true;
}

static bool hold_blocks(const Ledger *l, const LedgerHold *blocker, const LedgerHold *h) {
        SlotWalk w = ledger_walk(l, h);

        if (!scope_overlaps(&blocker->scope, &h->scope))
                return false;
        if (blocker->state == LEDGER_WAITING || blocker->exclusive || h->exclusive)
                return true;
        if (ledger_hold_is_full(blocker) || ledger_hold_is_full(h))
                return false;
        SLOT_FOREACH (slot, w)
                if (!slot_fits(slot, h) &&
                    scope_has(&blocker->scope, h->scope.parts[w.part].pmu, w.cpu - 1))
                        return true;
        return false;
}

int ledger_blockers(const Ledger *l, const LedgerHold *h,
                    int (*f)(void *userdata, LedgerHold *blocker), void *userdata) {
        LedgerHold *blocker;

        if (h->state == LEDGER_ACTIVE)
                return 0;
        TAILQ_FOREACH (blocker, &l->holds, list) {
                int r;

                /* later holds that overlap wait behind it */
                if (blocker == h)
                        return 0;
                if (!hold_blocks(l, blocker, h))
                        continue;
                r = f(userdata, blocker);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* NULL: the hold is not active there. */
static Slot *ledger_slot(const Ledger *l, const LedgerHold *h, unsigned pmu, unsigned cpu) {
        SlotChunk *chunk = slot_table_chunk(&l->slots, pmu, cpu / CHUNK_SLOTS);

        if (h->state != LEDGER_ACTIVE || !chunk || !scope_has(&h->scope, pmu, cpu))
                return NULL;
        return &chunk->slots[cpu % CHUNK_SLOTS];
}

void ledger_add_missing(Ledger *l, LedgerHold *h, unsigned pmu, unsigned cpu, unsigned missing) {
        Slot *slot = ledger_slot(l, h, pmu, cpu);
        uint64_t planned, unused;

        if (!slot || slot->sum == 0)
                return;
        if (ledger_hold_is_full(h)) { /* no plan lets any stay beside it */
                slot->extra = MAX(slot->extra, (uint64_t) missing);
                return;
        }
        planned = slot->kept + slot->sum + slot->extra;
        unused = slot->chunk->capacity - MIN(slot->chunk->capacity, planned);
        slot->extra += missing + unused;
}

void ledger_add_extra(Ledger *l, LedgerHold *h, size_t number, uint64_t extra) {
        SlotWalk w = ledger_walk(l, h);

        if (h->state != LEDGER_ACTIVE)
                return;
        SLOT_FOREACH (slot, w)
                if (number-- == 0 && slot->sum > 0)
                        slot->extra = MAX(slot->extra, extra);
}

void ledger_each_extra(const Ledger *l, const LedgerHold *h,
                       void (*f)(void *userdata, size_t number, uint64_t extra), void *userdata) {
        SlotWalk w = ledger_walk(l, h);
        size_t number = 0;

        if (h->state != LEDGER_ACTIVE || ledger_hold_is_full(h))
                return;
        SLOT_FOREACH (slot, w) {
                if (slot->extra > 0)
                        f(userdata, number, slot->extra);
                number++;
        }
}

bool ledger_demands(const Ledger *l, const Scope *scope, SlotDemand demand) {
        for (size_t i = 0; i < scope->n_parts; i++) {
                const ScopePart *part = &scope->parts[i];

                for (size_t word = 0; word < part->cpus.n_words; word++) {
                        const SlotChunk *chunk = slot_table_chunk(&l->slots, part->pmu, word);

                        if (chunk && (chunk->demand[demand] & part->cpus.words[word]))
                                return true;
                }
        }
        return false;
}
