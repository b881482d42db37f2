/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/promise.h"

#include <glib.h>

#define N_HOLDS 4u

typedef struct Desk {
        Ledger ledger;
        LedgerHold holds[N_HOLDS];
        size_t n;
} Desk;

static void desk_set_up(Desk *d, gconstpointer unused) {
        *d = (Desk){};
        ledger_init(&d->ledger);
        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 6), ==, 0);
        g_assert_cmpint(ledger_set_fixed(&d->ledger, 0, 3), ==, 0);
}

static void desk_tear_down(Desk *d, gconstpointer unused) {
        ledger_done(&d->ledger);
        for (size_t i = 0; i < d->n; i++)
                scope_done(&d->holds[i].scope);
}

static LedgerHold *desk_hold(Desk *d, const char *list, unsigned counters, bool exclusive) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        LedgerHold *h = &d->holds[d->n++];

        *h = (LedgerHold){ .counters = counters, .exclusive = exclusive };
        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        g_assert_cmpint(scope_add(&h->scope, 0, &cpus), ==, 0);
        g_assert_cmpint(ledger_admit(&d->ledger, h, false), ==, 0);
        return h;
}

static void assert_promised(const Desk *d, const LedgerHold *h, unsigned cpu, unsigned general,
                            uint32_t fixed) {
        Shape is = promise_of(&d->ledger, h, 0, cpu);

        g_assert_cmpuint(is.general, ==, general);
        g_assert_cmpuint(is.fixed, ==, fixed);
}

static void assert_must_be_free(const Desk *d, unsigned cpu, Shape opened, unsigned general,
                                uint32_t fixed) {
        Shape is = promise_must_be_free(&d->ledger, 0, cpu, opened);

        g_assert_cmpuint(is.general, ==, general);
        g_assert_cmpuint(is.fixed, ==, fixed);
}

static void test_all(Desk *d, gconstpointer unused) {
        LedgerHold *h = desk_hold(d, "0-1", 0, false), *other = desk_hold(d, "1", 0, false);

        assert_promised(d, h, 0, 6, 3);
        assert_promised(d, other, 1, 6, 3);
        assert_must_be_free(d, 0, SHAPE_NULL, 6, 3);
        assert_must_be_free(d, 1, (Shape){ 2, 1 }, 4, 2);
        assert_must_be_free(d, 2, SHAPE_NULL, 0, 0);
        assert_must_be_free(d, 64, SHAPE_NULL, 0, 0);
}

static void test_number(Desk *d, gconstpointer unused) {
        LedgerHold *h = desk_hold(d, "0-1", 4, false), *other = desk_hold(d, "1", 2, false);

        assert_promised(d, h, 1, 4, 0);
        assert_promised(d, other, 1, 2, 0);
        assert_must_be_free(d, 0, SHAPE_NULL, 4, 0);
        assert_must_be_free(d, 1, SHAPE_NULL, 6, 0);
        assert_must_be_free(d, 1, (Shape){ 4, 1 }, 2, 0);
        ledger_remove(&d->ledger, h);
        assert_must_be_free(d, 1, SHAPE_NULL, 2, 0);
}

/* What was promised by number is not promised once more, used or not. */
static void test_all_beside_a_number(Desk *d, gconstpointer unused) {
        LedgerHold *part = desk_hold(d, "0", 6, false), *all = desk_hold(d, "0-1", 0, false);

        assert_promised(d, part, 0, 6, 0);
        assert_promised(d, all, 0, 0, 3);
        assert_promised(d, all, 1, 6, 3);
        assert_must_be_free(d, 0, SHAPE_NULL, 6, 3);
        assert_must_be_free(d, 0, (Shape){ 6, 0 }, 0, 3);
}

static void test_exclusive(Desk *d, gconstpointer unused) {
        LedgerHold *h = desk_hold(d, "0", 2, true);

        assert_promised(d, h, 0, 6, 3);
        assert_must_be_free(d, 0, SHAPE_NULL, 6, 3);
}

#define ADD(name, function)                                                                        \
        g_test_add("/promise/" name, Desk, NULL, desk_set_up, function, desk_tear_down)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        ADD("all-is-general-and-fixed", test_all);
        ADD("numbers-add-up", test_number);
        ADD("all-is-what-no-number-has", test_all_beside_a_number);
        ADD("exclusive-is-all", test_exclusive);
        return g_test_run();
}
