/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan.h"

static const struct {
        bool yields;
        SlotDemand demand;
} classes[_PLAN_CLASS_MAX] = {
        [PLAN_ALWAYS] = { true, SLOT_FULL },
        [PLAN_EXCLUSIVE] = { true, SLOT_EXCLUSIVE },
        [PLAN_NEVER] = { false },
};

/* Calls f for the monitor's slots of which a number of counters is promised, until it says false.
 */
static bool plan_each_partial(const Ledger *l, const PlanMonitor *m,
                              bool (*f)(Slot *slot, const PlanMonitor *m)) {
        for (size_t i = 0; m->scope && i < m->scope->n_parts; i++) {
                const ScopePart *part = &m->scope->parts[i];

                for (size_t word = 0; word < part->cpus.n_words; word++) {
                        SlotChunk *chunk = slot_table_chunk(&l->slots, part->pmu, word);
                        uint64_t rest =
                                chunk ? part->cpus.words[word] & chunk->demand[SLOT_PARTIAL] : 0;

                        for (; rest; rest &= rest - 1)
                                if (!f(&chunk->slots[__builtin_ctzll(rest)], m))
                                        return false;
                }
        }
        return true;
}

static bool slot_clear(Slot *slot, const PlanMonitor *m) {
        slot->kept = 0;
        slot->kept_fixed = ~slot->chunk->fixed;
        return true;
}

static bool slot_keep(Slot *slot, const PlanMonitor *m) {
        slot->kept += counter_use_general(&m->use, slot->kept_fixed);
        slot->kept_fixed |= m->use.takes.fixed;
        return true;
}

/* Never where the capacity is unknown (0). */
static bool slot_has_room(Slot *slot, const PlanMonitor *m) {
        uint64_t general = slot->kept + counter_use_general(&m->use, slot->kept_fixed);

        return general + slot->sum + slot->extra <= slot->chunk->capacity;
}

int plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n) {
        for (size_t i = 0; i < n; i++) {
                PlanMonitor *m = sorted[i];

                m->must = m->scope && classes[m->klass].yields &&
                          ledger_demands(l, m->scope, classes[m->klass].demand);
                if (l->n_partial > 0)
                        (void) plan_each_partial(l, m, slot_clear);
        }
        if (l->n_partial == 0)
                return 0;

        for (size_t i = 0; i < n; i++)
                if (sorted[i]->klass != PLAN_ALWAYS && !sorted[i]->must)
                        (void) plan_each_partial(l, sorted[i], slot_keep);
        for (size_t i = 0; i < n; i++) {
                PlanMonitor *m = sorted[i];

                if (m->klass != PLAN_ALWAYS || m->must)
                        continue;
                m->must = !plan_each_partial(l, m, slot_has_room);
                if (!m->must)
                        (void) plan_each_partial(l, m, slot_keep);
        }
        return 0;
}
