/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For tests of yielders: some that write down what they are told, and the holds of a ledger. */

#include "yield/yielders.h"

#include <glib.h>
#include <string.h>

#define N_FAKES  64u
#define N_HOLDS  4u
#define CAPACITY 4u

typedef struct Fake Fake;
typedef struct Stage Stage;

/* Yields at once, or when the test says so. */
struct Fake {
        Yielder yielder;
        Scope scope;
        Stage *stage;
        bool slow, answers_inside, over;
        unsigned n_starts, n_yields, n_resumes;
        uint64_t hold, deadline;
};

struct Stage {
        Ledger ledger;
        Yielders yielders;
        LedgerHold holds[N_HOLDS];
        size_t n_holds;
        Fake fakes[N_FAKES];
        size_t n_fakes;
        unsigned n_acknowledged;
        GString *log; /* "y" and "r" with the number of the fake */
};

_unused_ static int fake_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        Fake *f = container_of(y, Fake, yielder);

        g_string_append_printf(f->stage->log, "y%zd ", f - f->stage->fakes);
        f->n_yields++;
        f->hold = hold;
        f->deadline = deadline_usec;
        if (f->answers_inside)
                yielder_acknowledge(y);
        return f->slow;
}

_unused_ static bool fake_is_over(const Yielder *y) {
        return container_of(y, Fake, yielder)->over;
}

_unused_ static void fake_resume(Yielder *y) {
        Fake *f = container_of(y, Fake, yielder);

        g_string_append_printf(f->stage->log, "r%zd ", f - f->stage->fakes);
        f->n_resumes++;
}

_unused_ static void fake_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = 0;
        (void) g_strlcpy(buffer, "fake", size);
}

_unused_ static void fake_start(Yielder *y) {
        Fake *f = container_of(y, Fake, yielder);

        g_assert_false(y->fresh);
        f->n_starts++;
}

_unused_ static const YielderOps fake_ops = {
        .start = fake_start,
        .yield = fake_yield,
        .is_over = fake_is_over,
        .resume = fake_resume,
        .describe = fake_describe,
};

_unused_ static void on_acknowledged(void *userdata) {
        Stage *s = userdata;

        s->n_acknowledged++;
}

_unused_ static void stage_up(Stage *s, gconstpointer unused) {
        *s = (Stage){ .log = g_string_new("") };
        ledger_init(&s->ledger);
        g_assert_cmpint(ledger_set_capacity(&s->ledger, 0, CAPACITY), ==, 0);
        yielders_init(&s->yielders, &s->ledger, on_acknowledged, s);
}

_unused_ static void stage_down(Stage *s, gconstpointer unused) {
        yielders_done(&s->yielders);
        ledger_done(&s->ledger);
        for (size_t i = 0; i < s->n_holds; i++)
                scope_done(&s->holds[i].scope);
        for (size_t i = 0; i < s->n_fakes; i++)
                scope_done(&s->fakes[i].scope);
        g_string_free(s->log, TRUE);
}

_unused_ static void scope_of(Scope *scope, const char *list) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        g_assert_cmpint(scope_add(scope, 0, &cpus), ==, 0);
}

/* An active hold of PMU 0; counters 0: all. No yielder is told yet. */
_unused_ static LedgerHold *stage_hold(Stage *s, const char *cpus, unsigned counters) {
        LedgerHold *h = &s->holds[s->n_holds++];

        *h = (LedgerHold){ .counters = counters };
        scope_of(&h->scope, cpus);
        g_assert_cmpint(ledger_admit(&s->ledger, h, false), ==, 0);
        return h;
}

_unused_ static void stage_enroll(Stage *s, Fake *f, bool yielded) {
        g_assert_cmpint(yielders_enroll(&s->yielders, &f->yielder), ==, 0);
        g_assert_cmpint(f->yielder.state, ==, yielded ? YIELDER_YIELDED : YIELDER_COUNTING);
        g_assert_cmpuint(f->n_starts, ==, yielded);
}

_unused_ static Fake *stage_fake(Stage *s, const char *cpus, uint32_t priority, bool slow) {
        Fake *f = &s->fakes[s->n_fakes++];

        *f = (Fake){ .stage = s, .slow = slow };
        f->yielder.ops = &fake_ops;
        f->yielder.plan =
                (PlanMonitor){ .scope = &f->scope, .priority = priority, .use.takes.general = 1 };
        if (cpus)
                scope_of(&f->scope, cpus);
        else
                f->yielder.every_hold = true;
        return f;
}

_unused_ static Fake *stage_monitor(Stage *s, const char *cpus, uint32_t priority) {
        Fake *f = stage_fake(s, cpus, priority, false);

        stage_enroll(s, f, false);
        return f;
}

_unused_ static Fake *stage_slow(Stage *s, const char *cpus) {
        Fake *f = stage_fake(s, cpus, 0, true);

        stage_enroll(s, f, false);
        return f;
}

_unused_ static size_t stage_apply(Stage *s) {
        size_t n_told = 99;

        g_assert_cmpint(yielders_apply(&s->yielders, 7, 1234, &n_told), ==, 0);
        return n_told;
}

_unused_ static int asked_in(const Stage *s, const char *cpus) {
        _cleanup_(scope_done) Scope scope = SCOPE_NULL;

        scope_of(&scope, cpus);
        return yielders_asked(&s->yielders, &scope, NULL, NULL);
}

typedef struct FakeTest {
        const char *name;
        void (*test)(Stage *s, gconstpointer unused);
} FakeTest;

_unused_ static int fake_tests_run(int argc, char **argv, const char *unit, const FakeTest *tests,
                                   size_t n) {
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < n; i++) {
                g_autofree char *path = g_strdup_printf("/%s/%s", unit, tests[i].name);

                g_test_add(path, Stage, NULL, stage_up, tests[i].test, stage_down);
        }
        return g_test_run();
}
