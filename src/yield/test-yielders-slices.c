/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Yielders that are told in slices. */

#include "yield/test-fake-yielder.h"

static const YielderOps sliced_ops = {
        .sliced = true,
        .start = fake_start,
        .yield = fake_yield,
        .resume = fake_resume,
        .describe = fake_describe,
};

static unsigned n_busy;

static void on_busy(void *userdata) {
        n_busy++;
}

/* Slices of one yielder each, as there is no time. */
static void stage_slice(Stage *s) {
        n_busy = 0;
        s->yielders.busy = on_busy;
        s->yielders.slice_usec = 0;
}

static Fake *stage_sliced(Stage *s, const char *cpus) {
        Fake *f = stage_fake(s, cpus, 0, false);

        f->yielder.ops = &sliced_ops;
        stage_enroll(s, f, false);
        return f;
}

static Fake *stage_sliced_by_cpu(Stage *s, const char *cpus) {
        Fake *f = stage_fake(s, cpus, 0, false);

        f->yielder.ops = &sliced_ops;
        f->yielder.plan.by_cpu = true;
        stage_enroll(s, f, false);
        return f;
}

static bool resuming_in(const Stage *s, const char *cpus) {
        _cleanup_(scope_done) Scope scope = SCOPE_NULL;

        scope_of(&scope, cpus);
        return yielders_are_resuming(&s->yielders, &scope);
}

/* Returns how many slices it took. */
static unsigned go_on(Stage *s) {
        unsigned n = 0;

        for (unsigned seen = n_busy - 1; n_busy != seen; n++) {
                seen = n_busy;
                yielders_go_on(&s->yielders);
        }
        return n;
}

static void test_many_yield_and_resume_in_slices(Stage *s, gconstpointer unused) {
        Fake *f[3] = { stage_sliced(s, "0"), stage_sliced_by_cpu(s, "0"), stage_sliced(s, "0") };
        Fake *slow = stage_slow(s, "0");
        LedgerHold *h = stage_hold(s, "0", 0);

        stage_slice(s);
        g_assert_cmpuint(stage_apply(s), ==, 4);
        g_assert_cmpstr(s->log->str, ==, "y3 y0 "); /* others' time runs from here on */
        g_assert_cmpint(f[1]->yielder.state, ==, YIELDER_ASKED);
        g_assert_cmpint(asked_in(s, "0"), ==, 3);
        g_assert_true(yielders_are_busy(&s->yielders));
        g_assert_cmpuint(n_busy, ==, 1);
        yielders_go_on(&s->yielders);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
        g_assert_cmpuint(n_busy, ==, 2);
        yielders_go_on(&s->yielders);
        g_assert_cmpuint(n_busy, ==, 2);
        g_assert_cmpuint(s->n_acknowledged, ==, 2);
        g_assert_false(yielders_are_busy(&s->yielders));
        g_assert_cmpint(asked_in(s, "0"), ==, 1);
        yielder_acknowledge(&slow->yielder);
        ledger_remove(&s->ledger, h);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpstr(s->log->str, ==, "y3 y0 y1 y2 r3 r0 ");
        g_assert_cmpint(f[2]->yielder.state, ==, YIELDER_YIELDED);
        g_assert_true(yielder_is_due(&f[2]->yielder));
        g_assert_true(resuming_in(s, "0"));
        g_assert_false(resuming_in(s, "1"));
        g_assert_cmpuint(go_on(s), ==, 2);
        g_assert_false(resuming_in(s, "0"));
        g_assert_cmpstr(s->log->str, ==, "y3 y0 y1 y2 r3 r0 r1 r2 ");
        for (unsigned i = 0; i < 3; i++) {
                g_assert_cmpint(f[i]->yielder.state, ==, YIELDER_COUNTING);
                g_assert_false(yielder_is_due(&f[i]->yielder));
        }
        g_assert_cmpuint(s->n_acknowledged, ==, 4); /* what they take is not free for a hold */
}

static void test_hold_that_ends_midway_spares_the_rest(Stage *s, gconstpointer unused) {
        Fake *f[3] = { stage_sliced_by_cpu(s, "0"), stage_sliced_by_cpu(s, "0"),
                       stage_sliced(s, "0") };
        LedgerHold *h = stage_hold(s, "0", 0);

        stage_slice(s);
        g_assert_cmpuint(stage_apply(s), ==, 3);
        ledger_remove(&s->ledger, h);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        g_assert_cmpint(asked_in(s, "0"), ==, 0);
        (void) go_on(s);
        g_assert_cmpstr(s->log->str, ==, "y0 r0 ");
        for (unsigned i = 0; i < 3; i++)
                g_assert_cmpint(f[i]->yielder.state, ==, YIELDER_COUNTING);
}

static void test_hold_that_comes_midway_finds_the_rest_yielded(Stage *s, gconstpointer unused) {
        Fake *f[3] = { stage_sliced_by_cpu(s, "0"), stage_sliced(s, "0"),
                       stage_sliced_by_cpu(s, "0") };
        LedgerHold *h = stage_hold(s, "0", 0);

        g_assert_cmpuint(stage_apply(s), ==, 3);
        stage_slice(s);
        ledger_remove(&s->ledger, h);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        (void) stage_hold(s, "0", 0);
        g_assert_cmpuint(stage_apply(s), ==, 1);
        g_assert_cmpint(asked_in(s, "0"), ==, 0);
        (void) go_on(s);
        g_assert_cmpstr(s->log->str, ==, "y0 y1 y2 r0 y0 ");
        for (unsigned i = 0; i < 3; i++)
                g_assert_cmpint(f[i]->yielder.state, ==, YIELDER_YIELDED);
}

/* One CPU after the other is held: it is asked for both, and yields once. */
static void test_hold_of_more_cpus_midway(Stage *s, gconstpointer unused) {
        Fake *first = stage_sliced_by_cpu(s, "0-1"), *second = stage_sliced_by_cpu(s, "0-1");
        LedgerHold *h = stage_hold(s, "0", 0);

        stage_slice(s);
        g_assert_cmpuint(stage_apply(s), ==, 2);
        (void) stage_hold(s, "1", 0);
        g_assert_cmpuint(stage_apply(s), ==, 1); /* the second one is asked already */
        g_assert_cmpint(first->yielder.state, ==, YIELDER_YIELDED);
        (void) go_on(s);
        g_assert_cmpstr(s->log->str, ==, "y0 y0 y1 ");
        ledger_remove(&s->ledger, h);
        g_assert_cmpuint(stage_apply(s), ==, 0);
        (void) go_on(s);
        g_assert_cmpstr(s->log->str, ==, "y0 y0 y1 r0 r1 ");
        g_assert_cmpint(second->yielder.state, ==, YIELDER_YIELDED); /* on CPU 1 */
        g_assert_false(cpuset_has(&second->yielder.yielded, 0));
        g_assert_true(cpuset_has(&second->yielder.yielded, 1));
}

static void test_who_leaves_before_its_slice_has_answered(Stage *s, gconstpointer unused) {
        Fake *f[3] = { stage_sliced(s, "0"), stage_sliced(s, "0"), stage_sliced(s, "0") };

        (void) stage_hold(s, "0", 0);
        stage_slice(s);
        g_assert_cmpuint(stage_apply(s), ==, 3);
        yielders_dismiss(&s->yielders, &f[1]->yielder);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
        g_assert_cmpuint(go_on(s), ==, 1);
        g_assert_cmpstr(s->log->str, ==, "y0 y2 ");
        g_assert_cmpint(asked_in(s, "0"), ==, 0);
}

/* A plan that was made for somebody else, and is not applied yet. */
static void test_who_is_spared_before_its_slice_goes_on(Stage *s, gconstpointer unused) {
        Fake *f[3] = { stage_sliced(s, "0"), stage_sliced(s, "0"), stage_sliced(s, "0") };
        Fake *newcomer;

        (void) stage_hold(s, "0", CAPACITY - 1);
        stage_slice(s);
        g_assert_cmpuint(stage_apply(s), ==, 2);
        yielders_dismiss(&s->yielders, &f[0]->yielder);
        yielders_dismiss(&s->yielders, &f[1]->yielder);
        newcomer = stage_fake(s, "0", 0, false);
        stage_enroll(s, newcomer, true);
        (void) go_on(s);
        g_assert_cmpint(f[2]->yielder.state, ==, YIELDER_COUNTING);
        g_assert_cmpstr(s->log->str, ==, "y1 ");
}

static size_t prepare_two(Yielder *const *yielders, size_t n) {
        Stage *s = container_of(yielders[0], Fake, yielder)->stage;

        g_string_append_printf(s->log, "p%zu ", n);
        return MIN(n, 2u);
}

static const YielderOps prepared_ops = {
        .sliced = true,
        .start = fake_start,
        .yield = fake_yield,
        .resume = fake_resume,
        .describe = fake_describe,
        .prepare = prepare_two,
};

/* What is prepared is done by the same slice, whatever time it takes. */
static void test_who_is_prepared_resumes_in_the_slice(Stage *s, gconstpointer unused) {
        LedgerHold *h;

        for (unsigned i = 0; i < 6; i++) /* the fifth one knows nothing of that */
                stage_sliced(s, i == 1 ? "1" : "0")->yielder.ops =
                        i == 4 ? &sliced_ops : &prepared_ops;
        h = stage_hold(s, "0", 0);
        g_assert_cmpuint(stage_apply(s), ==, 5);
        stage_slice(s);
        ledger_remove(&s->ledger, h);
        g_string_truncate(s->log, 0);
        (void) stage_apply(s);
        g_assert_cmpstr(s->log->str, ==, "p3 r0 r2 ");
        yielders_go_on(&s->yielders);
        g_assert_cmpstr(s->log->str, ==, "p3 r0 r2 p1 r3 ");
        (void) go_on(s);
        g_assert_cmpstr(s->log->str, ==, "p3 r0 r2 p1 r3 r4 p1 r5 ");
}

int main(int argc, char **argv) {
        static const FakeTest tests[] = {
                { "many-yield-and-resume-in-slices", test_many_yield_and_resume_in_slices },
                { "hold-that-ends-midway-spares-the-rest",
                  test_hold_that_ends_midway_spares_the_rest },
                { "hold-that-comes-midway-finds-the-rest-yielded",
                  test_hold_that_comes_midway_finds_the_rest_yielded },
                { "hold-of-more-cpus-midway", test_hold_of_more_cpus_midway },
                { "who-leaves-before-its-slice-has-answered",
                  test_who_leaves_before_its_slice_has_answered },
                { "who-is-spared-before-its-slice-goes-on",
                  test_who_is_spared_before_its_slice_goes_on },
                { "who-is-prepared-resumes-in-the-slice",
                  test_who_is_prepared_resumes_in_the_slice },
        };

        return fake_tests_run(argc, argv, "yielders-slices", tests, G_N_ELEMENTS(tests));
}
