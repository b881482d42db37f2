/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan.h"

static const struct {
        bool yields;
        CellDemand demand;
} classes[_PLAN_CLASS_MAX] = {
        [PLAN_ALWAYS] = { true, CELL_FULL },
        [PLAN_EXCLUSIVE] = { true, CELL_EXCLUSIVE },
        [PLAN_NEVER] = { false },
};

/* Calls f for the monitor's cells of which a number of counters is promised, until it says false.
 */
static bool plan_each_partial(const Ledger *l, const PlanMonitor *m,
                              bool (*f)(Cell *cell, const PlanMonitor *m)) {
        for (size_t i = 0; m->scope && i < m->scope->n_parts; i++) {
                const ScopePart *part = &m->scope->parts[i];

                for (size_t word = 0; word < part->cpus.n_words; word++) {
                        CellChunk *chunk = cell_table_chunk(&l->cells, part->pmu, word);
                        uint64_t rest =
                                chunk ? part->cpus.words[word] & chunk->demand[CELL_PARTIAL] : 0;

                        for (; rest; rest &= rest - 1)
                                if (!f(&chunk->cells[__builtin_ctzll(rest)], m))
                                        return false;
                }
        }
        return true;
}

static bool cell_clear(Cell *cell, const PlanMonitor *m) {
        cell->kept = 0;
        return true;
}

static bool cell_keep(Cell *cell, const PlanMonitor *m) {
        cell->kept += m->use;
        return true;
}

/* Never where the capacity is unknown (0). */
static bool cell_has_room(Cell *cell, const PlanMonitor *m) {
        return cell->kept + m->use + cell->sum + cell->extra <= cell->chunk->capacity;
}

int plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n) {
        for (size_t i = 0; i < n; i++) {
                PlanMonitor *m = sorted[i];

                m->must = m->scope && classes[m->klass].yields &&
                          ledger_demands(l, m->scope, classes[m->klass].demand);
                if (l->n_partial > 0)
                        (void) plan_each_partial(l, m, cell_clear);
        }
        if (l->n_partial == 0)
                return 0;

        for (size_t i = 0; i < n; i++)
                if (sorted[i]->klass != PLAN_ALWAYS && !sorted[i]->must)
                        (void) plan_each_partial(l, sorted[i], cell_keep);
        for (size_t i = 0; i < n; i++) {
                PlanMonitor *m = sorted[i];

                if (m->klass != PLAN_ALWAYS || m->must)
                        continue;
                m->must = !plan_each_partial(l, m, cell_has_room);
                if (!m->must)
                        (void) plan_each_partial(l, m, cell_keep);
        }
        return 0;
}
