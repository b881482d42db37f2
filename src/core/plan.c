/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan.h"

#include <string.h>

static const struct {
        bool yields;
        SlotDemand demand;
} classes[_PLAN_CLASS_MAX] = {
        [PLAN_ALWAYS] = { true, SLOT_FULL },
        [PLAN_EXCLUSIVE] = { true, SLOT_EXCLUSIVE },
        [PLAN_NEVER] = { false },
};

/* Room for all CPUs of the scope. */
int plan_monitor_init(PlanMonitor *m) {
        size_t n = 0;

        for (size_t i = 0; m->by_cpu && m->scope && i < m->scope->n_parts; i++)
                n = MAX(n, m->scope->parts[i].cpus.n_words);
        m->where.words = calloc(MAX(n, 1u), sizeof(uint64_t));
        if (!m->where.words)
                return -ENOMEM;
        m->where.n_words = n;
        return 0;
}

void plan_monitor_done(PlanMonitor *m) {
        cpuset_done(&m->where);
}

/* The slots of one PMU on the CPUs of a word. */
typedef struct PlanWord {
        SlotChunk *chunk;
        uint64_t *where; /* NULL: the monitor yields as a whole */
        uint64_t cpus;   /* of the monitor's scope */
        const CounterUse *use;
} PlanWord;

/* Calls f for the monitor's words in which holds demand anything, until it says false. */
static bool plan_each_word(const Ledger *l, PlanMonitor *m,
                           bool (*f)(PlanWord *w, PlanMonitor *m)) {
        for (size_t i = 0; m->scope && i < m->scope->n_parts; i++) {
                const ScopePart *part = &m->scope->parts[i];

                for (size_t word = 0; word < part->cpus.n_words; word++) {
                        PlanWord w = { .chunk = slot_table_chunk(&l->slots, part->pmu, word),
                                       .where = m->by_cpu ? &m->where.words[word] : NULL,
                                       .cpus = part->cpus.words[word],
                                       .use = m->uses ? &m->uses[i] : &m->use };

                        if (w.chunk && !f(&w, m))
                                return false;
                }
        }
        return true;
}

static bool word_demand(PlanWord *w, PlanMonitor *m) {
        uint64_t must = w->cpus & w->chunk->demand[classes[m->klass].demand];

        if (w->where)
                *w->where |= must;
        m->must |= must != 0;
        return true;
}

/* The slots of which a number of counters is promised, where the monitor does not yield. */
static uint64_t word_partial(const PlanWord *w) {
        return w->cpus & w->chunk->demand[SLOT_PARTIAL] & ~(w->where ? *w->where : 0);
}

static bool word_clear(PlanWord *w, PlanMonitor *m) {
        for (uint64_t rest = w->cpus & w->chunk->demand[SLOT_PARTIAL]; rest; rest &= rest - 1) {
                Slot *slot = &w->chunk->slots[__builtin_ctzll(rest)];

                slot->kept = 0;
                slot->kept_fixed = ~w->chunk->fixed;
        }
        return true;
}

/* What it takes beside those that stay; an event for which no counter is left takes none. */
static unsigned use_kept(const CounterUse *use, uint32_t taken) {
        CounterUse all = { .takes.fixed = taken };
        unsigned n = counter_use_general(use, taken);

        if (n < SHAPE_NO_SPILL)
                return n;
        counter_use_add_open(&all, use);
        return all.takes.general;
}

static bool word_keep(PlanWord *w, PlanMonitor *m) {
        for (uint64_t rest = word_partial(w); rest; rest &= rest - 1) {
                Slot *slot = &w->chunk->slots[__builtin_ctzll(rest)];

                slot->kept += use_kept(w->use, slot->kept_fixed);
                slot->kept_fixed |= w->use->takes.fixed;
        }
        return true;
}

/* Never where the capacity is unknown (0). */
static bool slot_has_room(const Slot *slot, const CounterUse *use) {
        uint64_t general = slot->kept + counter_use_general(use, slot->kept_fixed);

        return general + slot->sum + slot->extra <= slot->chunk->capacity;
}

static bool word_fit(PlanWord *w, PlanMonitor *m) {
        for (uint64_t rest = word_partial(w); rest; rest &= rest - 1) {
                if (slot_has_room(&w->chunk->slots[__builtin_ctzll(rest)], w->use))
                        continue;
                m->must = true;
                if (!w->where)
                        return false;
                *w->where |= rest & -rest;
        }
        return true;
}

/* By the holds that have all counters of a slot. */
static void plan_full(const Ledger *l, PlanMonitor *m) {
        m->must = false;
        if (m->by_cpu)
                memset(m->where.words, 0, m->where.n_words * sizeof(uint64_t));
        if (classes[m->klass].yields)
                (void) plan_each_word(l, m, word_demand);
}

/* Whether it may count somewhere. */
static bool plan_stays(const PlanMonitor *m) {
        return m->by_cpu || !m->must;
}

int plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n) {
        for (size_t i = 0; i < n; i++) {
                plan_full(l, sorted[i]);
                if (l->n_partial > 0)
                        (void) plan_each_word(l, sorted[i], word_clear);
        }
        if (l->n_partial == 0)
                return 0;

        for (size_t i = 0; i < n; i++)
                if (sorted[i]->klass != PLAN_ALWAYS && plan_stays(sorted[i]))
                        (void) plan_each_word(l, sorted[i], word_keep);
        for (size_t i = 0; i < n; i++) {
                PlanMonitor *m = sorted[i];

                if (m->klass != PLAN_ALWAYS || !plan_stays(m))
                        continue;
                (void) plan_each_word(l, m, word_fit);
                if (plan_stays(m))
                        (void) plan_each_word(l, m, word_keep);
        }
        return 0;
}
