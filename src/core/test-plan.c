/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/plan.h"

#include <glib.h>

#define N_HOLDS    6u
#define N_MONITORS 12u

typedef struct Stage {
        Ledger ledger;
        LedgerHold holds[N_HOLDS];
        size_t n_holds;
        PlanMonitor monitors[N_MONITORS];
        Scope scopes[N_MONITORS];
        PlanMonitor *sorted[N_MONITORS];
        size_t n_monitors;
} Stage;

static void stage_set_up(Stage *s, gconstpointer unused) {
        *s = (Stage){};
        ledger_init(&s->ledger);
}

static void stage_tear_down(Stage *s, gconstpointer unused) {
        ledger_done(&s->ledger);
        for (size_t i = 0; i < s->n_holds; i++)
                scope_done(&s->holds[i].scope);
        for (size_t i = 0; i < s->n_monitors; i++) {
                plan_monitor_done(&s->monitors[i]);
                scope_done(&s->scopes[i]);
        }
}

static void scope_extend(Scope *scope, unsigned pmu, const char *list) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        g_assert_cmpint(scope_add(scope, pmu, &cpus), ==, 0);
}

/* An active hold of PMU 0. */
static LedgerHold *stage_hold(Stage *s, const char *cpus, bool exclusive, unsigned counters) {
        LedgerHold *h = &s->holds[s->n_holds++];

        *h = (LedgerHold){ .exclusive = exclusive, .counters = counters };
        scope_extend(&h->scope, 0, cpus);
        g_assert_cmpint(ledger_admit(&s->ledger, h, false), ==, 0);
        return h;
}

/* Added in the plan's order; the age is the place. */
static PlanMonitor *stage_monitor(Stage *s, const char *cpus, PlanClass klass, uint32_t priority) {
        PlanMonitor *m = &s->monitors[s->n_monitors];

        *m = (PlanMonitor){ .scope = &s->scopes[s->n_monitors],
                            .priority = priority,
                            .klass = klass,
                            .use.takes.general = 1,
                            .seq = s->n_monitors };
        scope_extend(&s->scopes[s->n_monitors], 0, cpus);
        s->sorted[s->n_monitors++] = m;
        return m;
}

static void stage_plan(Stage *s) {
        g_assert_cmpint(plan_compute(&s->ledger, s->sorted, s->n_monitors), ==, 0);
}

static void stage_capacity(Stage *s, uint64_t counters) {
        g_assert_cmpint(ledger_set_capacity(&s->ledger, 0, counters), ==, 0);
}

static void test_nobody_yields_to_nobody(Stage *s, gconstpointer unused) {
        PlanMonitor *m = stage_monitor(s, "0-3", PLAN_ALWAYS, 0);

        m->must = true;
        stage_plan(s);
        g_assert_false(m->must);
}

static void test_all_yield_where_all_is_held(Stage *s, gconstpointer unused) {
        PlanMonitor *in = stage_monitor(s, "3-4", PLAN_ALWAYS, 9);
        PlanMonitor *beside = stage_monitor(s, "4", PLAN_ALWAYS, 0);

        stage_capacity(s, 100);
        stage_hold(s, "0-3", false, 0);
        stage_plan(s);
        g_assert_true(in->must);
        g_assert_false(beside->must);
}

static void test_class_decides_to_whom(Stage *s, gconstpointer unused) {
        PlanMonitor *never = stage_monitor(s, "0-1", PLAN_NEVER, 0);
        PlanMonitor *to_shared = stage_monitor(s, "0", PLAN_EXCLUSIVE, 0);
        PlanMonitor *to_exclusive = stage_monitor(s, "1", PLAN_EXCLUSIVE, 0);

        stage_hold(s, "0", false, 0);
        stage_hold(s, "1", true, 0);
        stage_plan(s);
        g_assert_false(never->must);
        g_assert_false(to_shared->must);
        g_assert_true(to_exclusive->must);
}

static void test_lowest_priority_yields_first(Stage *s, gconstpointer unused) {
        PlanMonitor *high = stage_monitor(s, "0", PLAN_ALWAYS, 5);
        PlanMonitor *older = stage_monitor(s, "0", PLAN_ALWAYS, 1);
        PlanMonitor *younger = stage_monitor(s, "0", PLAN_ALWAYS, 1);

        stage_capacity(s, 4);
        stage_hold(s, "0", false, 2);
        stage_plan(s);
        g_assert_false(high->must);
        g_assert_false(older->must);
        g_assert_true(younger->must);
}

static void test_smaller_one_stays_beside_a_large_one_that_yields(Stage *s, gconstpointer unused) {
        PlanMonitor *large = stage_monitor(s, "0", PLAN_ALWAYS, 5);
        PlanMonitor *small = stage_monitor(s, "0", PLAN_ALWAYS, 1);

        large->use.takes.general = 4;
        stage_capacity(s, 4);
        stage_hold(s, "0", false, 3);
        stage_plan(s);
        g_assert_true(large->must);
        g_assert_false(small->must);
}

/* A monitor of two PMUs takes one counter of the first and four of the second. */
static void test_each_pmu_has_its_own_use(Stage *s, gconstpointer unused) {
        static const CounterUse uses[] = { { .takes.general = 1 }, { .takes.general = 4 } };
        PlanMonitor *m = stage_monitor(s, "0", PLAN_ALWAYS, 0);

        scope_extend(&s->scopes[0], 1, "1");
        m->uses = uses;
        stage_capacity(s, 4);
        g_assert_cmpint(ledger_set_capacity(&s->ledger, 1, 4), ==, 0);
        stage_hold(s, "0", false, 3);
        stage_plan(s);
        g_assert_false(m->must);
        scope_extend(&s->holds[s->n_holds].scope, 1, "1");
        s->holds[s->n_holds].counters = 1;
        g_assert_cmpint(ledger_admit(&s->ledger, &s->holds[s->n_holds++], false), ==, 0);
        stage_plan(s);
        g_assert_true(m->must);
}

static void test_who_never_yields_counts_first(Stage *s, gconstpointer unused) {
        PlanMonitor *high = stage_monitor(s, "0", PLAN_ALWAYS, 5);
        PlanMonitor *never = stage_monitor(s, "0", PLAN_NEVER, 0);

        stage_capacity(s, 4);
        stage_hold(s, "0", false, 3);
        stage_plan(s);
        g_assert_true(high->must);
        g_assert_false(never->must);
}

static void test_one_tight_slot_is_enough(Stage *s, gconstpointer unused) {
        PlanMonitor *wide = stage_monitor(s, "0-100", PLAN_ALWAYS, 5);
        PlanMonitor *narrow = stage_monitor(s, "0", PLAN_ALWAYS, 1);

        stage_capacity(s, 4);
        stage_hold(s, "0-99", false, 3);
        stage_hold(s, "99", false, 1);
        stage_plan(s);
        g_assert_true(wide->must);
        g_assert_false(narrow->must);
}

static void test_all_yield_where_capacity_is_unknown(Stage *s, gconstpointer unused) {
        PlanMonitor *m = stage_monitor(s, "0", PLAN_ALWAYS, 5);

        stage_hold(s, "0", false, 1);
        stage_plan(s);
        g_assert_true(m->must);
}

static void test_nobody_yields_where_there_is_no_limit(Stage *s, gconstpointer unused) {
        PlanMonitor *m = stage_monitor(s, "0", PLAN_ALWAYS, 5);

        stage_capacity(s, SLOT_UNLIMITED);
        stage_hold(s, "0", false, UINT32_MAX);
        stage_plan(s);
        g_assert_false(m->must);
}

/* Three of four are taken by others: no monitor can stay beside one that is promised, though there
 * is room for one on paper. */
static void test_what_is_missing_makes_room(Stage *s, gconstpointer unused) {
        PlanMonitor *m = stage_monitor(s, "0-1", PLAN_ALWAYS, 5);
        LedgerHold *h;

        m->by_cpu = true;
        g_assert_cmpint(plan_monitor_init(m), ==, 0);
        stage_capacity(s, 4);
        h = stage_hold(s, "0-1", false, 1);
        stage_plan(s);
        g_assert_false(m->must);
        ledger_add_missing(&s->ledger, h, 0, 1, 1);
        stage_plan(s);
        g_assert_true(cpuset_has(&m->where, 1));
        g_assert_false(cpuset_has(&m->where, 0));
        ledger_remove(&s->ledger, h);
}

static void test_what_others_take_makes_more_yield(Stage *s, gconstpointer unused) {
        PlanMonitor *first = stage_monitor(s, "0", PLAN_ALWAYS, 5);
        PlanMonitor *second = stage_monitor(s, "0", PLAN_ALWAYS, 1);
        LedgerHold *h;

        stage_capacity(s, 4);
        h = stage_hold(s, "0", false, 2);
        ledger_add_extra(&s->ledger, h, 0, 1);
        stage_plan(s);
        g_assert_false(first->must);
        g_assert_true(second->must);
        ledger_remove(&s->ledger, h);
        stage_plan(s);
        g_assert_false(second->must);
}

static void assert_yields_on(const PlanMonitor *m, const char *cpus) {
        g_autofree char *where = NULL;

        g_assert_cmpint(cpuset_format(&m->where, &where), ==, 0);
        g_assert_cmpstr(where, ==, cpus);
        g_assert_true(m->must == (cpus[0] != '\0'));
}

static void test_by_cpu_it_yields_where_it_must(Stage *s, gconstpointer unused) {
        PlanMonitor *high = stage_monitor(s, "0-100", PLAN_ALWAYS, 5);
        PlanMonitor *low = stage_monitor(s, "0-100", PLAN_ALWAYS, 1);
        LedgerHold *h;

        high->by_cpu = low->by_cpu = true;
        g_assert_cmpint(plan_monitor_init(high), ==, 0);
        g_assert_cmpint(plan_monitor_init(low), ==, 0);
        stage_capacity(s, 4);
        h = stage_hold(s, "63-64", false, 0);
        stage_plan(s);
        assert_yields_on(high, "63-64");
        assert_yields_on(low, "63-64");
        stage_hold(s, "2-3", false, 3);
        stage_plan(s);
        assert_yields_on(high, "63-64");
        assert_yields_on(low, "2-3,63-64");
        ledger_remove(&s->ledger, h);
        stage_plan(s);
        assert_yields_on(high, "");
        assert_yields_on(low, "2-3");
}

/* The first event of its kind counts in the fixed counter, later ones take a general one each. */
static void test_fixed_counters_are_in_nobodys_way(Stage *s, gconstpointer unused) {
        const CounterUse cycles = { .takes.fixed = 1, .spill = { 1 } };
        PlanMonitor *m[4];

        for (unsigned i = 0; i < G_N_ELEMENTS(m); i++) {
                m[i] = stage_monitor(s, "0", PLAN_ALWAYS, 9 - i);
                m[i]->use = cycles;
        }
        stage_capacity(s, 4);
        g_assert_cmpint(ledger_set_fixed(&s->ledger, 0, 1), ==, 0);
        stage_hold(s, "0", false, 3);
        stage_plan(s);
        for (unsigned i = 0; i < G_N_ELEMENTS(m); i++)
                g_assert_true(m[i]->must == (i >= 2));
        /* now the kernel has it */
        g_assert_cmpint(ledger_set_fixed(&s->ledger, 0, 0), ==, 0);
        stage_plan(s);
        for (unsigned i = 0; i < G_N_ELEMENTS(m); i++)
                g_assert_true(m[i]->must == (i >= 1));
        stage_hold(s, "0", false, 0);
        stage_plan(s);
        g_assert_true(m[0]->must);
}

/* Six monitors of instructions, which have no fixed counter there: one of them is in the way. */
/* Of two whose event no general counter serves one counts, and the other takes nothing. */
static void test_nothing_in_place_of_a_fixed_one(Stage *s, gconstpointer unused) {
        const CounterUse slots = { .takes.fixed = 1, .spill = { SHAPE_NO_SPILL } };
        PlanMonitor *other;

        for (unsigned i = 0; i < 2; i++)
                stage_monitor(s, "0", PLAN_NEVER, 9)->use = slots;
        other = stage_monitor(s, "0", PLAN_ALWAYS, 0);
        stage_capacity(s, 4);
        g_assert_cmpint(ledger_set_fixed(&s->ledger, 0, 1), ==, 0);
        stage_hold(s, "0", false, 3);
        stage_plan(s);
        g_assert_false(other->must);
}

static void test_general_ones_make_room(Stage *s, gconstpointer unused) {
        PlanMonitor *m[6], *fixed;

        for (unsigned i = 0; i < G_N_ELEMENTS(m); i++)
                m[i] = stage_monitor(s, "0", PLAN_ALWAYS, 9 - i);
        fixed = stage_monitor(s, "0", PLAN_ALWAYS, 0);
        fixed->use = (CounterUse){ .takes.fixed = 1, .spill = { 1 } };
        stage_capacity(s, 6);
        g_assert_cmpint(ledger_set_fixed(&s->ledger, 0, 1), ==, 0);
        stage_hold(s, "0", false, 1);
        stage_plan(s);
        for (unsigned i = 0; i < G_N_ELEMENTS(m); i++)
                g_assert_true(m[i]->must == (i == 5));
        g_assert_false(fixed->must);
}

/* Random stages, compared with the rule as applied to the holds themselves. */

#define N_PMUS 2u
#define N_CPUS 4u

static const unsigned cpu_numbers[N_CPUS] = { 0, 63, 64, 65 };

static uint64_t capacity_of(const Stage *s, unsigned pmu) {
        return pmu < s->ledger.slots.n_pmus ? s->ledger.slots.pmus[pmu].capacity : 0;
}

static bool slot_is_full(const Stage *s, unsigned pmu, unsigned cpu, bool exclusively) {
        for (size_t i = 0; i < s->n_holds; i++) {
                const LedgerHold *h = &s->holds[i];

                if (h->state == LEDGER_ACTIVE && scope_has(&h->scope, pmu, cpu) &&
                    (h->exclusive || (h->counters == 0 && !exclusively)))
                        return true;
        }
        return false;
}

static uint64_t slot_demand(const Stage *s, unsigned pmu, unsigned cpu) {
        const SlotChunk *chunk = slot_table_chunk(&s->ledger.slots, pmu, cpu / CHUNK_SLOTS);
        uint64_t demand = 0;

        for (size_t i = 0; i < s->n_holds; i++) {
                const LedgerHold *h = &s->holds[i];

                if (h->state == LEDGER_ACTIVE && !h->exclusive && scope_has(&h->scope, pmu, cpu))
                        demand += h->counters;
        }
        return demand > 0 ? demand + chunk->slots[cpu % CHUNK_SLOTS].extra : 0;
}

static uint32_t fixed_of(const Stage *s, unsigned pmu) {
        return pmu < s->ledger.slots.n_pmus ? s->ledger.slots.pmus[pmu].fixed : 0;
}

/* Whether the monitor, which has this CPU in its scope, counts there. */
static bool counts_on(const PlanMonitor *m, unsigned cpu) {
        return m->by_cpu ? !cpuset_has(&m->where, cpu) : !m->must;
}

/* Whether o uses counters before m does: one that always stays, or comes earlier. */
static bool is_before(const PlanMonitor *o, const PlanMonitor *m) {
        return o->klass != PLAN_ALWAYS || !m || o->seq < m->seq;
}

/* General counters used on a slot by m and by those before it that stay there. Of those who have
 * the same fixed counter all but one take a general one. */
static uint64_t slot_kept(const Stage *s, unsigned pmu, unsigned cpu, const PlanMonitor *m) {
        uint64_t kept = 0, fixed[2] = {};

        for (size_t i = 0; i < s->n_monitors; i++) {
                const PlanMonitor *o = s->sorted[i];

                if (!scope_has(o->scope, pmu, cpu) ||
                    (o != m && !(counts_on(o, cpu) && is_before(o, m))))
                        continue;
                kept += o->use.takes.general;
                for (unsigned f = 0; f < G_N_ELEMENTS(fixed); f++)
                        fixed[f] += o->use.takes.fixed >> f & 1;
        }
        for (unsigned f = 0; f < G_N_ELEMENTS(fixed); f++)
                kept += fixed[f] - MIN(fixed[f], fixed_of(s, pmu) >> f & 1);
        return kept;
}

/* only: of by_cpu, for this CPU alone; -1: for all. */
static bool rule_says_must(const Stage *s, const PlanMonitor *m, int only) {
        for (unsigned i = 0; i < N_PMUS * N_CPUS && m->klass != PLAN_NEVER; i++) {
                unsigned pmu = i / N_CPUS, cpu = cpu_numbers[i % N_CPUS];
                uint64_t demand = slot_demand(s, pmu, cpu);

                if (only >= 0 && cpu != (unsigned) only)
                        continue;
                if (!scope_has(m->scope, pmu, cpu))
                        continue;
                if (slot_is_full(s, pmu, cpu, m->klass == PLAN_EXCLUSIVE))
                        return true;
                if (m->klass == PLAN_ALWAYS && demand > 0 &&
                    slot_kept(s, pmu, cpu, m) + demand > capacity_of(s, pmu))
                        return true;
        }
        return false;
}

static void scope_random(Scope *scope) {
        for (unsigned i = 0; i < N_PMUS * N_CPUS; i++) {
                g_autofree char *list = g_strdup_printf("%u", cpu_numbers[i % N_CPUS]);

                if (g_test_rand_int_range(0, 3) == 0)
                        scope_extend(scope, i / N_CPUS, list);
        }
}

static void stage_random(Stage *s) {
        for (unsigned pmu = 0; pmu < N_PMUS; pmu++) {
                g_assert_cmpint(ledger_set_capacity(&s->ledger, pmu,
                                                    (uint64_t) g_test_rand_int_range(0, 9)),
                                ==, 0);
                g_assert_cmpint(
                        ledger_set_fixed(&s->ledger, pmu, (uint32_t) g_test_rand_int_range(0, 4)),
                        ==, 0);
        }
        for (size_t i = 0; i < N_HOLDS; i++) {
                LedgerHold *h = stage_hold(s, "", g_test_rand_int_range(0, 8) == 0,
                                           (unsigned) g_test_rand_int_range(0, 5));

                ledger_remove(&s->ledger, h);
                scope_random(&h->scope);
                (void) ledger_admit(&s->ledger, h, true); /* some wait: they demand nothing */
                for (size_t slot = 0; slot < h->n_slots; slot++)
                        if (g_test_rand_bit())
                                ledger_add_extra(&s->ledger, h, slot,
                                                 (unsigned) g_test_rand_int_range(0, 3));
        }
        for (size_t i = 0; i < N_MONITORS; i++) {
                PlanMonitor *m = stage_monitor(s, "", PLAN_ALWAYS, N_MONITORS - (uint32_t) i);

                scope_random(&s->scopes[i]);
                m->use.takes.general = (unsigned) g_test_rand_int_range(0, 4);
                m->use.takes.fixed = (uint32_t) g_test_rand_int_range(0, 4);
                m->use.spill[0] = m->use.spill[1] = 1;
                if (g_test_rand_int_range(0, 4) == 0)
                        m->klass = g_test_rand_bit() ? PLAN_EXCLUSIVE : PLAN_NEVER;
                m->by_cpu = g_test_rand_bit();
                g_assert_cmpint(plan_monitor_init(m), ==, 0);
        }
}

static void run_stages(void (*check)(const Stage *s)) {
        for (int i = 0; i < 5000; i++) {
                Stage s;

                stage_set_up(&s, NULL);
                stage_random(&s);
                stage_plan(&s);
                check(&s);
                for (size_t j = 0; j < s.n_holds; j++) { /* again, without some of them */
                        if (g_test_rand_bit())
                                ledger_remove(&s.ledger, &s.holds[j]);
                        while (ledger_next(&s.ledger))
                                ;
                }
                stage_plan(&s);
                check(&s);
                stage_tear_down(&s, NULL);
        }
}

static void check_rule(const Stage *s) {
        for (size_t i = 0; i < s->n_monitors; i++) {
                const PlanMonitor *m = s->sorted[i];

                g_assert_true(m->must == rule_says_must(s, m, -1));
                for (size_t cpu = 0; m->by_cpu && cpu < N_CPUS; cpu++)
                        g_assert_true(cpuset_has(&m->where, cpu_numbers[cpu]) ==
                                      rule_says_must(s, m, (int) cpu_numbers[cpu]));
        }
}

/* No monitor that could yield stays where more is used than the holds leave. */
static void check_promise(const Stage *s) {
        for (unsigned i = 0; i < N_PMUS * N_CPUS; i++) {
                unsigned pmu = i / N_CPUS, cpu = cpu_numbers[i % N_CPUS];
                uint64_t demand = slot_demand(s, pmu, cpu);
                bool full = slot_is_full(s, pmu, cpu, false);
                bool tight =
                        demand > 0 && slot_kept(s, pmu, cpu, NULL) + demand > capacity_of(s, pmu);

                for (size_t j = 0; j < s->n_monitors; j++)
                        if (scope_has(s->sorted[j]->scope, pmu, cpu) &&
                            s->sorted[j]->klass == PLAN_ALWAYS && (full || tight))
                                g_assert_false(counts_on(s->sorted[j], cpu));
        }
}

static void test_agrees_with_the_rule(void) {
        run_stages(check_rule);
}

static void test_keeps_each_promise(void) {
        run_stages(check_promise);
}

#define ADD(name, function)                                                                        \
        g_test_add("/plan/" name, Stage, NULL, stage_set_up, function, stage_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("by-cpu-it-yields-where-it-must", test_by_cpu_it_yields_where_it_must);
        ADD("nobody-yields-to-nobody", test_nobody_yields_to_nobody);
        ADD("all-yield-where-all-is-held", test_all_yield_where_all_is_held);
        ADD("class-decides-to-whom", test_class_decides_to_whom);
        ADD("lowest-priority-yields-first", test_lowest_priority_yields_first);
        ADD("smaller-one-stays-beside-a-large-one-that-yields",
            test_smaller_one_stays_beside_a_large_one_that_yields);
        ADD("each-pmu-has-its-own-use", test_each_pmu_has_its_own_use);
        ADD("who-never-yields-counts-first", test_who_never_yields_counts_first);
        ADD("one-tight-slot-is-enough", test_one_tight_slot_is_enough);
        ADD("all-yield-where-capacity-is-unknown", test_all_yield_where_capacity_is_unknown);
        ADD("nobody-yields-where-there-is-no-limit", test_nobody_yields_where_there_is_no_limit);
        ADD("fixed-counters-are-in-nobodys-way", test_fixed_counters_are_in_nobodys_way);
        ADD("nothing-in-place-of-a-fixed-one", test_nothing_in_place_of_a_fixed_one);
        ADD("general-ones-make-room", test_general_ones_make_room);
        ADD("what-is-missing-makes-room", test_what_is_missing_makes_room);
        ADD("what-others-take-makes-more-yield", test_what_others_take_makes_more_yield);
        g_test_add_func("/plan/model/agrees-with-the-rule", test_agrees_with_the_rule);
        g_test_add_func("/plan/model/keeps-each-promise", test_keeps_each_promise);
        return g_test_run();
}
