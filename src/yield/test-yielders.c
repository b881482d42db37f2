/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "yield/test-fake-yielder.h"

/* Every plan is counted (-Wl,--wrap). */
static unsigned n_plans;

int __real_plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n);
int __wrap_plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n);

int __wrap_plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n) {
        n_plans++;
        return __real_plan_compute(l, sorted, n);
}

/* ---- who is told what ---- */

static void test_monitor_yields_to_a_hold_and_resumes_after_it(Stage *s, gconstpointer unused) {
        Fake *m = stage_monitor(s, "0-1", 0);
        LedgerHold *h = stage_hold(s, "1", 0);

        g_assert_cmpuint(stage_apply(s), ==, 1);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpuint(m->hold, ==, 7);
        g_assert_cmpuint(m->deadline, ==, 1234);
        ledger_remove(&s->ledger, h);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_COUNTING);
        g_assert_cmpstr(s->log->str, ==, "y0 r0 ");
}

static void test_yields_are_counted(Stage *s, gconstpointer unused) {
        Fake *m = stage_monitor(s, "0", 0);
        LedgerHold *first = stage_hold(s, "0", 0), *second;

        g_assert_cmpuint(stage_apply(s), ==, 1);
        second = stage_hold(s, "0", 0);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        ledger_remove(&s->ledger, first);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpuint(m->n_resumes, ==, 0);
        ledger_remove(&s->ledger, second);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpuint(m->n_yields, ==, 1);
        g_assert_cmpuint(m->n_resumes, ==, 1);
}

static void test_who_is_elsewhere_is_not_told(Stage *s, gconstpointer unused) {
        Fake *elsewhere = stage_monitor(s, "2-3", 0), *everywhere = stage_fake(s, NULL, 0, false);

        stage_enroll(s, everywhere, false);
        (void) stage_hold(s, "0-1", 0);
        g_assert_cmpuint(stage_apply(s), ==, 1);
        g_assert_cmpuint(elsewhere->n_yields, ==, 0);
        g_assert_cmpuint(everywhere->n_yields, ==, 1);
}

static void test_yields_come_before_resumes(Stage *s, gconstpointer unused) {
        LedgerHold *h;

        (void) stage_monitor(s, "0", 0);
        (void) stage_monitor(s, "1", 0);
        h = stage_hold(s, "0", 0);
        (void) stage_apply(s);
        ledger_remove(&s->ledger, h);
        (void) stage_hold(s, "1", 0);
        g_string_truncate(s->log, 0);
        (void) stage_apply(s);
        g_assert_cmpstr(s->log->str, ==, "y1 r0 ");
}

static void test_rank_says_who_yields(Stage *s, gconstpointer unused) {
        Fake *first = stage_monitor(s, "0", 1);

        for (unsigned i = 1; i < CAPACITY; i++)
                (void) stage_monitor(s, "0", 2);
        (void) stage_hold(s, "0", 1);
        (void) stage_apply(s);
        g_assert_cmpstr(s->log->str, ==, "y0 ");
        yielder_rank(&first->yielder, 3, PLAN_ALWAYS);
        (void) stage_apply(s);
        g_assert_cmpstr(s->log->str, ==, "y0 y3 r0 ");
        yielder_rank(&first->yielder, 0, PLAN_EXCLUSIVE);
        (void) stage_apply(s);
        g_assert_cmpint(first->yielder.state, ==, YIELDER_COUNTING);
}

/* ---- who is there already, who comes and goes ---- */

static void test_who_comes_into_a_hold_starts_yielded_and_is_not_told(Stage *s,
                                                                      gconstpointer unused) {
        Fake *inside = stage_fake(s, "0", 0, false), *outside = stage_fake(s, "1", 0, false);
        Fake *everywhere = stage_fake(s, NULL, 0, false);
        LedgerHold *h = stage_hold(s, "0", 0);

        stage_enroll(s, inside, true);
        stage_enroll(s, outside, false);
        stage_enroll(s, everywhere, true);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpstr(s->log->str, ==, "");
        ledger_remove(&s->ledger, h);
        (void) stage_apply(s);
        g_assert_cmpuint(inside->n_resumes, ==, 1);
        g_assert_cmpuint(outside->n_resumes, ==, 0);
        g_assert_cmpuint(everywhere->n_resumes, ==, 1);
}

static void test_who_leaves_is_told_no_more(Stage *s, gconstpointer unused) {
        Fake *m = stage_monitor(s, "0", 0), *stays = stage_monitor(s, "0", 0);
        LedgerHold *h = stage_hold(s, "0", 0);

        (void) stage_apply(s);
        yielders_dismiss(&s->yielders, &m->yielder);
        g_assert_null(m->yielder.yielders);
        g_assert_cmpuint(s->n_acknowledged, ==, 0);
        ledger_remove(&s->ledger, h);
        (void) stage_apply(s);
        g_assert_cmpuint(m->n_resumes, ==, 0);
        g_assert_cmpuint(stays->n_resumes, ==, 1);
}

static void test_yielders_that_go_leave_theirs_alone(Stage *s, gconstpointer unused) {
        Fake *m = stage_slow(s, "0");

        (void) stage_hold(s, "0", 0);
        (void) stage_apply(s);
        yielders_done(&s->yielders);
        g_assert_null(m->yielder.yielders);
        yielder_acknowledge(&m->yielder);
        g_assert_cmpuint(s->n_acknowledged, ==, 0);
}

/* ---- those who take their time ---- */

static void test_all_are_asked_at_once(Stage *s, gconstpointer unused) {
        Fake *a = stage_slow(s, "0"), *b = stage_slow(s, "0-1"), *c = stage_slow(s, "0");

        (void) stage_hold(s, "0", 0);
        g_assert_cmpuint(stage_apply(s), ==, 3);
        g_assert_cmpint(asked_in(s, "0"), ==, 3);
        g_assert_cmpuint(stage_apply(s), ==, 0); /* once */
        yielder_acknowledge(&b->yielder);
        g_assert_cmpint(asked_in(s, "0"), ==, 2);
        yielder_acknowledge(&a->yielder);
        yielder_acknowledge(&c->yielder);
        g_assert_cmpint(asked_in(s, "0"), ==, 0);
        g_assert_cmpuint(s->n_acknowledged, ==, 3);
        g_assert_cmpstr(s->log->str, ==, "y0 y1 y2 ");
}

static void test_answer_may_come_while_being_asked(Stage *s, gconstpointer unused) {
        Fake *m = stage_slow(s, "0");

        m->answers_inside = true;
        (void) stage_hold(s, "0", 0);
        (void) stage_apply(s);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
}

static void test_answer_that_nobody_awaits_changes_nothing(Stage *s, gconstpointer unused) {
        Fake *m = stage_slow(s, "0");
        LedgerHold *h;

        yielder_acknowledge(&m->yielder);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_COUNTING);

        h = stage_hold(s, "0", 0);
        (void) stage_apply(s);
        yielder_acknowledge(&m->yielder);
        yielder_acknowledge(&m->yielder);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);

        ledger_remove(&s->ledger, h);
        (void) stage_apply(s);
        yielder_acknowledge(&m->yielder);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_COUNTING);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);

        yielders_dismiss(&s->yielders, &m->yielder);
        yielder_acknowledge(&m->yielder);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
}

static void test_who_has_not_answered_resumes_when_the_hold_ends(Stage *s, gconstpointer unused) {
        Fake *m = stage_slow(s, "0");
        LedgerHold *h = stage_hold(s, "0", 0);

        (void) stage_apply(s);
        ledger_remove(&s->ledger, h);
        (void) stage_apply(s);
        g_assert_cmpuint(m->n_resumes, ==, 1);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_COUNTING);
        (void) stage_hold(s, "0", 0);
        g_assert_cmpuint(stage_apply(s), ==, 1);
        g_assert_cmpuint(m->n_yields, ==, 2);
}

/* Only if it still has to, and has not answered. */
static void test_who_was_asked_by_a_hold_that_is_over_is_asked_again(Stage *s,
                                                                     gconstpointer unused) {
        Fake *m = stage_slow(s, "0"), *answers = stage_slow(s, "0"), *free = stage_slow(s, "1");
        LedgerHold *over = stage_hold(s, "0-1", 0), *h;

        (void) stage_apply(s);
        yielder_acknowledge(&answers->yielder);
        h = stage_hold(s, "0", 0);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        ledger_remove(&s->ledger, over);
        m->over = answers->over = free->over = true;
        g_string_truncate(s->log, 0);
        g_assert_cmpuint(stage_apply(s), ==, 1);
        g_assert_cmpstr(s->log->str, ==, "y0 r2 ");
        g_assert_cmpint(m->yielder.state, ==, YIELDER_ASKED);
        m->over = false;
        g_assert_cmpuint(stage_apply(s), ==, 0);
        ledger_remove(&s->ledger, h);
        m->over = true;
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpint(m->yielder.state, ==, YIELDER_COUNTING);
}

static void test_who_leaves_while_asked_has_answered(Stage *s, gconstpointer unused) {
        Fake *m = stage_slow(s, "0");

        (void) stage_hold(s, "0", 0);
        (void) stage_apply(s);
        yielders_dismiss(&s->yielders, &m->yielder);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
        g_assert_cmpint(asked_in(s, "0"), ==, 0);
}

static int stop_at_second(void *userdata, const Yielder *y) {
        unsigned *n = userdata;

        g_assert_cmpint(y->state, ==, YIELDER_ASKED);
        return ++*n == 2 ? -ECANCELED : 0;
}

static void test_asked_are_those_of_the_scope(Stage *s, gconstpointer unused) {
        Scope scope = SCOPE_NULL;
        unsigned n = 0;

        (void) stage_slow(s, "0");
        (void) stage_slow(s, "1");
        stage_enroll(s, stage_fake(s, NULL, 0, true), false);
        (void) stage_hold(s, "0-1", 0);
        g_assert_cmpuint(stage_apply(s), ==, 3);
        g_assert_cmpint(asked_in(s, "0"), ==, 2);
        g_assert_cmpint(asked_in(s, "1"), ==, 2);
        g_assert_cmpint(asked_in(s, "0-1"), ==, 3);
        g_assert_cmpint(asked_in(s, "5"), ==, 1);

        scope_of(&scope, "0-1");
        g_assert_cmpint(yielders_asked(&s->yielders, &scope, stop_at_second, &n), ==, -ECANCELED);
        g_assert_cmpuint(n, ==, 2);
        scope_done(&scope);
}

/* ---- holds of a number of counters ---- */

static void test_lowest_priority_and_youngest_yield_first(Stage *s, gconstpointer unused) {
        Fake *low = stage_monitor(s, "0", 1), *old = stage_monitor(s, "0", 5);
        Fake *young = stage_monitor(s, "0", 5), *high = stage_monitor(s, "0", 9);
        Fake *const order[] = { low, young, old, high };

        for (unsigned n = 1; n <= G_N_ELEMENTS(order); n++) {
                LedgerHold h = { .counters = n };

                scope_of(&h.scope, "0");
                g_assert_cmpint(ledger_admit(&s->ledger, &h, false), ==, 0);
                g_assert_cmpuint(stage_apply(s), ==, n);
                for (unsigned i = 0; i < G_N_ELEMENTS(order); i++)
                        g_assert_cmpint(order[i]->yielder.state, ==,
                                        i < n ? YIELDER_YIELDED : YIELDER_COUNTING);
                ledger_remove(&s->ledger, &h);
                (void) stage_apply(s);
                scope_done(&h.scope);
        }
}

static void test_newcomer_of_higher_priority_displaces_another(Stage *s, gconstpointer unused) {
        Fake *low = stage_monitor(s, "0", 1), *high = stage_fake(s, "0", 2, false);

        (void) stage_hold(s, "0", CAPACITY - 1);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        stage_enroll(s, high, false);
        g_assert_cmpuint(stage_apply(s), ==, 1);
        g_assert_cmpint(low->yielder.state, ==, YIELDER_YIELDED);
        yielders_dismiss(&s->yielders, &high->yielder);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpint(low->yielder.state, ==, YIELDER_COUNTING);
}

/* ---- many at once ---- */

static void stage_gather_fakes(Stage *s, unsigned n) {
        yielders_gather(&s->yielders);
        for (unsigned i = 0; i < n; i++) {
                Fake *f = stage_fake(s, "0", 0, false);

                g_assert_cmpint(yielders_enroll(&s->yielders, &f->yielder), ==, 0);
                g_assert_cmpuint(stage_apply(s), ==, 0);
        }
}

static void test_yielders_enrolled_together_are_settled_once(Stage *s, gconstpointer unused) {
        Fake *low = stage_monitor(s, "0", 0);

        low->yielder.plan.seq = UINT64_MAX; /* the youngest */
        (void) stage_hold(s, "0", 1);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        n_plans = 0;
        stage_gather_fakes(s, 40);
        g_assert_cmpuint(n_plans, ==, 0);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        g_assert_cmpuint(n_plans, ==, 1);
        g_assert_cmpint(low->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpuint(low->hold, ==, 7);
        g_assert_cmpuint(low->deadline, ==, 1234);
        for (unsigned i = 1; i <= 40; i++) {
                bool yielded = i >= CAPACITY;

                g_assert_cmpuint(s->fakes[i].n_starts, ==, yielded);
                g_assert_cmpuint(s->fakes[i].n_yields, ==, 0);
                g_assert_cmpint(s->fakes[i].yielder.state, ==,
                                yielded ? YIELDER_YIELDED : YIELDER_COUNTING);
        }
}

static void test_yielders_dismissed_together_are_settled_once(Stage *s, gconstpointer unused) {
        Fake *last;

        stage_gather_fakes(s, 40);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        last = stage_fake(s, "0", 0, false);
        (void) stage_hold(s, "0", CAPACITY - 1);
        stage_enroll(s, last, true);
        (void) stage_apply(s);
        n_plans = 0;
        yielders_gather(&s->yielders);
        for (unsigned i = 0; i < 40; i++) {
                yielders_dismiss(&s->yielders, &s->fakes[i].yielder);
                g_assert_cmpuint(stage_apply(s), ==, 0);
        }
        g_assert_cmpuint(last->n_resumes, ==, 0);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        g_assert_cmpuint(n_plans, ==, 1);
        g_assert_cmpuint(last->n_resumes, ==, 1);
}

static void test_acknowledgements_wait_for_the_outermost_settling(Stage *s, gconstpointer unused) {
        Fake *leaves = stage_slow(s, "0"), *answers = stage_slow(s, "0");

        (void) stage_hold(s, "0", 0);
        (void) stage_apply(s);
        yielders_gather(&s->yielders);
        yielders_gather(&s->yielders);
        yielders_dismiss(&s->yielders, &leaves->yielder);
        yielder_acknowledge(&answers->yielder);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        g_assert_cmpuint(s->n_acknowledged, ==, 0);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
}

static void test_gathering_nothing_settles_nothing(Stage *s, gconstpointer unused) {
        (void) stage_monitor(s, "0", 0);
        n_plans = 0;
        yielders_gather(&s->yielders);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        g_assert_cmpuint(n_plans, ==, 0);
}

static void test_gathered_bridges_start_at_once(Stage *s, gconstpointer unused) {
        (void) stage_hold(s, "0", 0);
        yielders_gather(&s->yielders);
        stage_enroll(s, stage_fake(s, NULL, 0, true), true);
        g_assert_cmpint(yielders_settle(&s->yielders), ==, 0);
        g_assert_cmpuint(s->fakes[0].n_starts, ==, 1);
}

/* ---- the list ---- */

static void assert_sorted(const Yielders *r) {
        for (size_t i = 0; i < r->n_yielders; i++) {
                const PlanMonitor *here = r->plans[i], *before = i > 0 ? r->plans[i - 1] : NULL;

                g_assert_true(here == &r->yielders[i]->plan);
                if (before)
                        g_assert_true(
                                before->priority > here->priority ||
                                (before->priority == here->priority && before->seq < here->seq));
        }
}

static void test_order_lasts_however_many_come_and_go(Stage *s, gconstpointer unused) {
        enum { MANY = 300 };
        g_autofree Fake *many = g_new0(Fake, MANY);
        size_t n_in = 0;

        for (unsigned round = 0; round < 20 * MANY; round++) {
                Fake *f = &many[g_test_rand_int_range(0, MANY)];

                if (f->yielder.yielders) {
                        yielders_dismiss(&s->yielders, &f->yielder);
                        n_in--;
                } else {
                        *f = (Fake){ .stage = s };
                        f->yielder.ops = &fake_ops;
                        f->yielder.plan.scope = &f->scope;
                        f->yielder.plan.use.takes.general = 1;
                        f->yielder.plan.priority = (uint32_t) g_test_rand_int_range(0, 5);
                        stage_enroll(s, f, false);
                        n_in++;
                }
                g_assert_cmpuint(s->yielders.n_yielders, ==, n_in);
                if (round % 50 == 0)
                        assert_sorted(&s->yielders);
        }
        assert_sorted(&s->yielders);
        yielders_done(&s->yielders);
}

int main(int argc, char **argv) {
        static const FakeTest tests[] = {
                { "monitor-yields-to-a-hold-and-resumes-after-it",
                  test_monitor_yields_to_a_hold_and_resumes_after_it },
                { "yields-are-counted", test_yields_are_counted },
                { "who-is-elsewhere-is-not-told", test_who_is_elsewhere_is_not_told },
                { "yields-come-before-resumes", test_yields_come_before_resumes },
                { "rank-says-who-yields", test_rank_says_who_yields },
                { "who-comes-into-a-hold-starts-yielded-and-is-not-told",
                  test_who_comes_into_a_hold_starts_yielded_and_is_not_told },
                { "who-leaves-is-told-no-more", test_who_leaves_is_told_no_more },
                { "yielders-that-go-leave-theirs-alone", test_yielders_that_go_leave_theirs_alone },
                { "all-are-asked-at-once", test_all_are_asked_at_once },
                { "answer-may-come-while-being-asked", test_answer_may_come_while_being_asked },
                { "answer-that-nobody-awaits-changes-nothing",
                  test_answer_that_nobody_awaits_changes_nothing },
                { "who-has-not-answered-resumes-when-the-hold-ends",
                  test_who_has_not_answered_resumes_when_the_hold_ends },
                { "who-was-asked-by-a-hold-that-is-over-is-asked-again",
                  test_who_was_asked_by_a_hold_that_is_over_is_asked_again },
                { "who-leaves-while-asked-has-answered", test_who_leaves_while_asked_has_answered },
                { "asked-are-those-of-the-scope", test_asked_are_those_of_the_scope },
                { "lowest-priority-and-youngest-yield-first",
                  test_lowest_priority_and_youngest_yield_first },
                { "newcomer-of-higher-priority-displaces-another",
                  test_newcomer_of_higher_priority_displaces_another },
                { "yielders-enrolled-together-are-settled-once",
                  test_yielders_enrolled_together_are_settled_once },
                { "yielders-dismissed-together-are-settled-once",
                  test_yielders_dismissed_together_are_settled_once },
                { "acknowledgements-wait-for-the-outermost-settling",
                  test_acknowledgements_wait_for_the_outermost_settling },
                { "gathering-nothing-settles-nothing", test_gathering_nothing_settles_nothing },
                { "gathered-bridges-start-at-once", test_gathered_bridges_start_at_once },
                { "order-lasts-however-many-come-and-go",
                  test_order_lasts_however_many_come_and_go },
        };

        return fake_tests_run(argc, argv, "yielders", tests, G_N_ELEMENTS(tests));
}
