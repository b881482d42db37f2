/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The promises of the ledger, one by one. test-ledger-model.c compares it with a model.
 */

#include "core/ledger.h"

#include <glib.h>

/* Allocations of the code under test that still succeed; -1: all do. */
static int allocations_left = -1;

static bool allocation_fails(void) {
        if (allocations_left < 0)
                return false;
        return allocations_left == 0 || allocations_left-- == 0;
}

void *calloc(size_t n, size_t size) {
        return allocation_fails() ? NULL : g_try_malloc0_n(n, size);
}

void *reallocarray(void *p, size_t n, size_t size) {
        return allocation_fails() ? NULL : g_try_realloc_n(p, n, size);
}

typedef struct Desk {
        Ledger ledger;
        LedgerHold holds[8];
        size_t n_holds;
} Desk;

static void desk_set_up(Desk *d, gconstpointer unused) {
        ledger_init(&d->ledger);
}

static void desk_tear_down(Desk *d, gconstpointer unused) {
        ledger_done(&d->ledger);
        for (size_t i = 0; i < d->n_holds; i++)
                scope_done(&d->holds[i].scope);
}

static void scope_extend(Scope *s, unsigned pmu, const char *list) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        g_assert_cmpint(scope_add(s, pmu, &cpus), ==, 0);
}

/* Asks for PMU 0 on these CPUs. */
static LedgerHold *desk_hold(Desk *d, const char *cpus, bool exclusive, unsigned counters) {
        LedgerHold *h = &d->holds[d->n_holds++];

        *h = (LedgerHold){ .exclusive = exclusive, .counters = counters };
        scope_extend(&h->scope, 0, cpus);
        return h;
}

static LedgerHold *desk_shared(Desk *d, const char *cpus) {
        return desk_hold(d, cpus, false, 0);
}

static LedgerHold *desk_exclusive(Desk *d, const char *cpus) {
        return desk_hold(d, cpus, true, 0);
}

#define assert_admitted(d, h) g_assert_cmpint(ledger_admit(&(d)->ledger, (h), true), ==, 0)
#define assert_waits(d, h)                                                                         \
        g_assert_cmpint(ledger_admit(&(d)->ledger, (h), true), ==, LEDGER_E_WAITS)
#define assert_next(d, h)     g_assert_true(ledger_next(&(d)->ledger) == (h))
#define assert_nobody_next(d) g_assert_null(ledger_next(&(d)->ledger))

static void test_shared_live_side_by_side(Desk *d, gconstpointer unused) {
        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 4), ==, 0);
        assert_admitted(d, desk_shared(d, "0-3"));
        assert_admitted(d, desk_shared(d, "2-5"));
        assert_admitted(d, desk_hold(d, "0-5", false, 4));
}

static void test_exclusive_overlaps_nobody(Desk *d, gconstpointer unused) {
        LedgerHold *first = desk_exclusive(d, "0-3");

        assert_admitted(d, first);
        assert_waits(d, desk_shared(d, "3-4"));
        assert_waits(d, desk_exclusive(d, "0"));
        assert_waits(d, desk_hold(d, "1", false, 1));
        assert_admitted(d, desk_exclusive(d, "70"));
}

static void test_exclusive_waits_for_shared(Desk *d, gconstpointer unused) {
        LedgerHold *shared = desk_shared(d, "0"), *exclusive = desk_exclusive(d, "0-1");

        assert_admitted(d, shared);
        assert_waits(d, exclusive);
        assert_nobody_next(d);
        ledger_remove(&d->ledger, shared);
        assert_next(d, exclusive);
        g_assert_cmpint(exclusive->state, ==, LEDGER_ACTIVE);
}

static void test_pmus_are_apart(Desk *d, gconstpointer unused) {
        LedgerHold *other = desk_exclusive(d, "");

        scope_extend(&other->scope, 1, "0-3");
        assert_admitted(d, desk_exclusive(d, "0-3"));
        assert_admitted(d, other);
}

static void test_numbers_share_the_capacity(Desk *d, gconstpointer unused) {
        LedgerHold *two = desk_hold(d, "0-1", false, 2), *three = desk_hold(d, "1-2", false, 3);

        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 4), ==, 0);
        assert_admitted(d, two);
        assert_waits(d, three);
        ledger_remove(&d->ledger, two);
        assert_next(d, three);
}

static void test_unknown_capacity_is_no_limit(Desk *d, gconstpointer unused) {
        for (int i = 0; i < 3; i++)
                assert_admitted(d, desk_hold(d, "0", false, UINT32_MAX));
}

static void test_more_than_there_is_is_refused(Desk *d, gconstpointer unused) {
        LedgerHold *h = desk_hold(d, "0", false, 5);

        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 4), ==, 0);
        g_assert_cmpint(ledger_admit(&d->ledger, h, true), ==, LEDGER_E_TOO_MANY);
        g_assert_cmpint(h->state, ==, LEDGER_NONE);
        h->exclusive = true; /* it has all, whatever the number */
        assert_admitted(d, h);
}

static void test_empty_scope_is_admitted(Desk *d, gconstpointer unused) {
        LedgerHold *empty = desk_exclusive(d, "");

        assert_admitted(d, desk_exclusive(d, "0"));
        assert_admitted(d, empty);
        g_assert_true(ledger_is_first(&d->ledger, empty));
}

static void test_waiting_exclusive_is_not_overtaken(Desk *d, gconstpointer unused) {
        LedgerHold *active = desk_shared(d, "0"), *exclusive = desk_exclusive(d, "0-1");
        LedgerHold *later = desk_shared(d, "1"), *last = desk_shared(d, "1-2");

        assert_admitted(d, active);
        assert_waits(d, exclusive);
        assert_waits(d, later);
        assert_waits(d, last);
        ledger_remove(&d->ledger, active);
        assert_next(d, exclusive);
        assert_nobody_next(d);
        ledger_remove(&d->ledger, exclusive);
        assert_next(d, later);
        assert_next(d, last);
}

static void test_apart_from_the_queue_passes(Desk *d, gconstpointer unused) {
        assert_admitted(d, desk_shared(d, "0"));
        assert_waits(d, desk_exclusive(d, "0-1"));
        assert_admitted(d, desk_exclusive(d, "2-3"));
}

static void test_leaving_the_queue_lets_others_in(Desk *d, gconstpointer unused) {
        LedgerHold *exclusive = desk_exclusive(d, "0-1"), *later = desk_shared(d, "0-1");

        assert_admitted(d, desk_shared(d, "0"));
        assert_waits(d, exclusive);
        assert_waits(d, later);
        ledger_remove(&d->ledger, exclusive);
        assert_next(d, later);
        assert_nobody_next(d);
}

static void test_who_leaves_when_ready_is_not_handed_out(Desk *d, gconstpointer unused) {
        LedgerHold *active = desk_exclusive(d, "0-1");
        LedgerHold *a = desk_exclusive(d, "0"), *b = desk_exclusive(d, "1");

        assert_admitted(d, active);
        assert_waits(d, a);
        assert_waits(d, b);
        ledger_remove(&d->ledger, active);
        ledger_remove(&d->ledger, a);
        assert_next(d, b);
        assert_nobody_next(d);
}

static void test_smaller_capacity_starves_nobody(Desk *d, gconstpointer unused) {
        LedgerHold *active = desk_hold(d, "0", false, 1), *large = desk_hold(d, "0", false, 4);
        LedgerHold *later = desk_shared(d, "0");

        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 4), ==, 0);
        assert_admitted(d, active);
        assert_waits(d, large);
        assert_waits(d, later);
        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 2), ==, 0);
        ledger_remove(&d->ledger, active);
        assert_next(d, large);
        assert_next(d, later);
}

static void test_larger_capacity_lets_in(Desk *d, gconstpointer unused) {
        LedgerHold *waiting = desk_hold(d, "0-1", false, 4);

        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 4), ==, 0);
        assert_admitted(d, desk_hold(d, "1-2", false, 2));
        assert_waits(d, waiting);
        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 6), ==, 0);
        assert_next(d, waiting);
}

static void test_who_may_not_wait_changes_nothing(Desk *d, gconstpointer unused) {
        LedgerHold *h = desk_exclusive(d, "0-1");

        assert_admitted(d, desk_shared(d, "0"));
        g_assert_cmpint(ledger_admit(&d->ledger, h, false), ==, LEDGER_E_WOULD_WAIT);
        g_assert_cmpint(h->state, ==, LEDGER_NONE);
        assert_admitted(d, desk_shared(d, "0-1"));
}

static void test_position_is_that_of_the_worst_slot(Desk *d, gconstpointer unused) {
        LedgerHold *a = desk_exclusive(d, "0"), *b = desk_exclusive(d, "0");
        LedgerHold *c = desk_exclusive(d, "0-1"), *e = desk_exclusive(d, "1");

        assert_admitted(d, desk_exclusive(d, "0-1"));
        assert_waits(d, a);
        assert_waits(d, b);
        assert_waits(d, c);
        assert_waits(d, e);
        g_assert_cmpuint(ledger_position(&d->holds[4]), ==, 0);
        g_assert_cmpuint(ledger_position(a), ==, 1);
        g_assert_cmpuint(ledger_position(c), ==, 3);
        g_assert_cmpuint(ledger_position(e), ==, 2);
        ledger_remove(&d->ledger, b);
        g_assert_cmpuint(ledger_position(c), ==, 2);
}

static void test_first_is_alone_in_its_scope(Desk *d, gconstpointer unused) {
        LedgerHold *a = desk_shared(d, "0-1"), *b = desk_shared(d, "1-2");

        assert_admitted(d, a);
        g_assert_true(ledger_is_first(&d->ledger, a));
        assert_admitted(d, b);
        g_assert_false(ledger_is_first(&d->ledger, b));
        ledger_remove(&d->ledger, a);
        g_assert_true(ledger_is_first(&d->ledger, b));
}

static void test_demands_are_those_of_active_holds(Desk *d, gconstpointer unused) {
        LedgerHold *full = desk_shared(d, "0"), *partial = desk_hold(d, "70", false, 1);
        LedgerHold *waiting = desk_exclusive(d, "70-71");

        assert_admitted(d, full);
        assert_admitted(d, partial);
        assert_waits(d, waiting);
        g_assert_true(ledger_demands(&d->ledger, &full->scope, SLOT_FULL));
        g_assert_false(ledger_demands(&d->ledger, &full->scope, SLOT_PARTIAL));
        g_assert_false(ledger_demands(&d->ledger, &partial->scope, SLOT_FULL));
        g_assert_true(ledger_demands(&d->ledger, &partial->scope, SLOT_PARTIAL));
        ledger_remove(&d->ledger, partial);
        assert_next(d, waiting);
        g_assert_true(ledger_demands(&d->ledger, &partial->scope, SLOT_EXCLUSIVE));
}

static int collect(void *userdata, LedgerHold *h) {
        g_ptr_array_add(userdata, h);
        return 0;
}

static int stop_at_once(void *userdata, LedgerHold *h) {
        *(LedgerHold **) userdata = h;
        return 7;
}

static void test_blockers_are_named_once_in_order(Desk *d, gconstpointer unused) {
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        LedgerHold *a = desk_shared(d, "0-3"), *b = desk_exclusive(d, "2-5"), *first = NULL;
        LedgerHold *h = desk_exclusive(d, "0-5");

        assert_admitted(d, a);
        assert_waits(d, b);
        assert_admitted(d, desk_shared(d, "6"));
        g_assert_cmpint(ledger_admit(&d->ledger, h, false), ==, LEDGER_E_WOULD_WAIT);
        g_assert_cmpint(ledger_blockers(&d->ledger, h, collect, found), ==, 0);
        g_assert_cmpuint(found->len, ==, 2);
        g_assert_true(found->pdata[0] == a);
        g_assert_true(found->pdata[1] == b);
        g_assert_cmpint(ledger_blockers(&d->ledger, h, stop_at_once, &first), ==, 7);
        g_assert_true(first == a);
}

static uint64_t extra_at(const Desk *d, unsigned cpu) {
        return d->ledger.slots.pmus[0].chunks[0]->slots[cpu].extra;
}

static void sum_extra(void *userdata, size_t number, uint64_t extra) {
        *(uint64_t *) userdata += (number + 1) * extra;
}

/* What strangers use is missing for whoever is promised a number there, until nobody is. */
static void test_extra_stays_with_its_slot(Desk *d, gconstpointer unused) {
        LedgerHold *a = desk_hold(d, "0-1", false, 2), *b = desk_hold(d, "1", false, 1);
        LedgerHold *all = desk_shared(d, "0-3");
        uint64_t sum = 0;

        assert_admitted(d, a);
        assert_admitted(d, b);
        assert_admitted(d, all);
        ledger_add_extra(&d->ledger, a, 0, 3);
        ledger_add_extra(&d->ledger, a, 0, 1);
        ledger_add_extra(&d->ledger, a, 1, 2);
        ledger_add_extra(&d->ledger, a, 2, 9);
        ledger_add_missing(&d->ledger, all, 0, 1, 4);
        ledger_add_missing(&d->ledger, all, 0, 3, 4);
        g_assert_cmpuint(extra_at(d, 0), ==, 3);
        g_assert_cmpuint(extra_at(d, 1), ==, 4);
        g_assert_cmpuint(extra_at(d, 3), ==, 0);
        ledger_each_extra(&d->ledger, a, sum_extra, &sum);
        g_assert_cmpuint(sum, ==, 3 + 2 * 4);
        ledger_remove(&d->ledger, a);
        g_assert_cmpuint(extra_at(d, 0), ==, 0);
        g_assert_cmpuint(extra_at(d, 1), ==, 4);
        ledger_remove(&d->ledger, b);
        g_assert_cmpuint(extra_at(d, 1), ==, 0);
}

static void test_built_up_again_says_the_same(Desk *d, gconstpointer unused) {
        LedgerHold *a = desk_shared(d, "0"), *b = desk_exclusive(d, "0-1"),
                   *c = desk_shared(d, "1");
        LedgerHold *e = desk_exclusive(d, "2"), *restored[] = { a, e, b, c };

        assert_admitted(d, a);
        assert_waits(d, b);
        assert_waits(d, c);
        assert_admitted(d, e);
        ledger_done(&d->ledger);
        ledger_init(&d->ledger);
        for (size_t i = 0; i < ELEMENTSOF(restored); i++)
                g_assert_cmpint(ledger_admit_again(&d->ledger, restored[i], i < 2), ==,
                                i < 2 ? 0 : LEDGER_E_WAITS);
        ledger_remove(&d->ledger, a);
        assert_next(d, b);
        assert_nobody_next(d);
}

/* Fails each allocation in turn until the hold is admitted, and checks the state each time. */
/* The next run finds fewer counters than were promised. */
static void test_built_up_again_on_less(Desk *d, gconstpointer unused) {
        LedgerHold *active = desk_hold(d, "0", false, 4), *waiting = desk_hold(d, "0", false, 5);

        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, 3), ==, 0);
        g_assert_cmpint(ledger_admit_again(&d->ledger, active, true), ==, 0);
        g_assert_cmpint(ledger_admit_again(&d->ledger, waiting, false), ==, LEDGER_E_WAITS);
        g_assert_null(ledger_next(&d->ledger));
        ledger_remove(&d->ledger, active);
        g_assert_true(ledger_next(&d->ledger) == waiting);
}

static void assert_survives(Desk *d, LedgerHold *h, int outcome) {
        size_t n_active = d->ledger.n_active, n_waiting = d->ledger.n_waiting;
        int r = -ENOMEM, n = 0;

        for (; r == -ENOMEM; n++) {
                g_assert_cmpint(h->state, ==, LEDGER_NONE);
                g_assert_cmpuint(d->ledger.n_active, ==, n_active);
                g_assert_cmpuint(d->ledger.n_waiting, ==, n_waiting);
                allocations_left = n;
                r = ledger_admit(&d->ledger, h, true);
                allocations_left = -1;
        }
        g_assert_cmpint(r, ==, outcome);
        g_assert_cmpint(n, >, 1); /* a failure happened */
}

static void test_out_of_memory_changes_nothing(Desk *d, gconstpointer unused) {
        LedgerHold *a = desk_hold(d, "0-200", false, 3), *b = desk_exclusive(d, "100-300");

        assert_survives(d, a, 0);
        assert_survives(d, b, LEDGER_E_WAITS);
        ledger_remove(&d->ledger, a);
        assert_next(d, b);
}

static void test_next_needs_no_memory(Desk *d, gconstpointer unused) {
        LedgerHold *a = desk_exclusive(d, "0-3"), *b = desk_hold(d, "0-1", false, 1);
        LedgerHold *c = desk_shared(d, "2");

        assert_admitted(d, a);
        assert_waits(d, b);
        assert_waits(d, c);
        allocations_left = 0;
        ledger_remove(&d->ledger, a);
        assert_next(d, b);
        assert_next(d, c);
        ledger_add_extra(&d->ledger, b, 0, 1);
        allocations_left = -1;
}

#define ADD(name, function)                                                                        \
        g_test_add("/ledger/" name, Desk, NULL, desk_set_up, function, desk_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("shared-live-side-by-side", test_shared_live_side_by_side);
        ADD("exclusive-overlaps-nobody", test_exclusive_overlaps_nobody);
        ADD("exclusive-waits-for-shared", test_exclusive_waits_for_shared);
        ADD("pmus-are-apart", test_pmus_are_apart);
        ADD("numbers-share-the-capacity", test_numbers_share_the_capacity);
        ADD("unknown-capacity-is-no-limit", test_unknown_capacity_is_no_limit);
        ADD("more-than-there-is-is-refused", test_more_than_there_is_is_refused);
        ADD("empty-scope-is-admitted", test_empty_scope_is_admitted);
        ADD("waiting-exclusive-is-not-overtaken", test_waiting_exclusive_is_not_overtaken);
        ADD("apart-from-the-queue-passes", test_apart_from_the_queue_passes);
        ADD("leaving-the-queue-lets-others-in", test_leaving_the_queue_lets_others_in);
        ADD("who-leaves-when-ready-is-not-handed-out",
            test_who_leaves_when_ready_is_not_handed_out);
        ADD("smaller-capacity-starves-nobody", test_smaller_capacity_starves_nobody);
        ADD("larger-capacity-lets-in", test_larger_capacity_lets_in);
        ADD("who-may-not-wait-changes-nothing", test_who_may_not_wait_changes_nothing);
        ADD("position-is-that-of-the-worst-slot", test_position_is_that_of_the_worst_slot);
        ADD("first-is-alone-in-its-scope", test_first_is_alone_in_its_scope);
        ADD("demands-are-those-of-active-holds", test_demands_are_those_of_active_holds);
        ADD("blockers-are-named-once-in-order", test_blockers_are_named_once_in_order);
        ADD("extra-stays-with-its-slot", test_extra_stays_with_its_slot);
        ADD("built-up-again-says-the-same", test_built_up_again_says_the_same);
        ADD("built-up-again-on-less-keeps-all", test_built_up_again_on_less);
        ADD("out-of-memory-changes-nothing", test_out_of_memory_changes_nothing);
        ADD("next-needs-no-memory", test_next_needs_no_memory);
        return g_test_run();
}
