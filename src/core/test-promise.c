/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/promise.h"

#include <glib.h>
#include <limits.h>

static const Shape whole = { 6, 3 };

static void assert_shape(Shape is, unsigned general, uint32_t fixed) {
        g_assert_cmpuint(is.general, ==, general);
        g_assert_cmpuint(is.fixed, ==, fixed);
}

/* ---- what is known ---- */

static void test_alone(void) {
        const Promise all = { .whole = whole }, part = { .whole = whole, .number = 4 };

        assert_shape(promise_must_be_free(&all), 6, 3);
        assert_shape(promise_of(&all, whole), 6, 3);
        assert_shape(promise_must_be_free(&part), 4, 0);
        assert_shape(promise_of(&part, (Shape){ 4, 0 }), 4, 0);
}

static void test_numbers_add_up(void) {
        Promise p = { .whole = whole,
                      .number = 1,
                      .n_holders = 2,
                      .holders = { { .number = 2 }, { .number = 3 } } };

        assert_shape(promise_must_be_free(&p), 6, 0);
        p.holders[1].opened.takes = (Shape){ 2, 1 };
        assert_shape(promise_must_be_free(&p), 4, 0);
        /* what is beyond the own number was promised to nobody */
        p.holders[1].opened.takes = (Shape){ 5, 1 };
        assert_shape(promise_must_be_free(&p), 3, 0);
        p.number = 0;
        assert_shape(promise_must_be_free(&p), 2, 2);
}

static void test_all_beside_a_number(void) {
        Promise p = { .whole = whole, .n_holders = 1, .holders = { { .number = 4 } } };

        assert_shape(promise_must_be_free(&p), 6, 3);
        assert_shape(promise_of(&p, whole), 2, 3);
        p.holders[0].opened.takes = (Shape){ 3, 0 };
        assert_shape(promise_must_be_free(&p), 3, 3);
        assert_shape(promise_of(&p, (Shape){ 3, 3 }), 2, 3);
}

/* A fixed counter counts one event: the other's has a general one, and nobody knows whose. */
static void test_the_same_fixed_counter(void) {
        const CounterUse cycles = { .takes.fixed = 1, .spill = { 1 } };
        Promise p = { .whole = whole,
                      .n_holders = 2,
                      .holders = { { .number = 1, .opened = cycles },
                                   { .number = 3, .opened = cycles } } };

        assert_shape(promise_must_be_free(&p), 5, 2);
        assert_shape(promise_of(&p, (Shape){ 5, 2 }), 2, 2);
        p.number = 2;
        assert_shape(promise_must_be_free(&p), 5, 0);
        /* it may be of the one who has no number */
        p.holders[1].number = 0;
        assert_shape(promise_must_be_free(&p), 3, 0);
        /* what the first opened may be beyond their number, if that is used up by this event */
        p.holders[0].perhaps = 1;
        p.holders[1].number = 3;
        g_assert_true(promise_explain(&p, (Shape){ 1, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 5, 0);
        p.holders[0].perhaps = 0;
        p.holders[1].perhaps = 1;
        g_assert_true(promise_explain(&p, (Shape){ 1, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 4, 0);
        p.number = 0;
        p.again = true;
        p.n_holders = 3;
        p.holders[2] = (PromiseHolder){ .number = 2, .opened = cycles };
        assert_shape(promise_must_be_free(&p), 3, 0);
}

/* Of two such events one counts nothing. */
static void test_nothing_in_place_of_it(void) {
        const CounterUse slots = { .takes.fixed = 2, .spill = { 0, SHAPE_NO_SPILL } };
        Promise p = { .whole = whole,
                      .number = 2,
                      .n_holders = 2,
                      .holders = { { .number = 1, .opened = slots },
                                   { .number = 3, .opened = slots } } };

        assert_shape(promise_must_be_free(&p), 6, 0);
        p.number = 0;
        assert_shape(promise_must_be_free(&p), 6, 1);
}

/* Its holder has opened some of it: what is known, and what only a scan explains. */
static void test_measured_again(void) {
        Promise p = { .whole = whole,
                      .again = true,
                      .n_holders = 1,
                      .holders = { { .all = true, .opened.takes = { 2, 1 } } } };

        assert_shape(promise_must_be_free(&p), 4, 2);
        p.holders[0].all = false;
        p.holders[0].number = 3;
        assert_shape(promise_must_be_free(&p), 1, 0);
        p.holders[0].opened.takes.general = 5;
        assert_shape(promise_must_be_free(&p), 0, 0);
        p.n_holders = 2;
        p.holders[1] = (PromiseHolder){ .number = 2 };
        assert_shape(promise_must_be_free(&p), 2, 0);
        p.holders[0] = (PromiseHolder){ .number = 3, .perhaps = 2 };
        g_assert_false(promise_explain(&p, (Shape){ 3, 0 }, 0));
        g_assert_true(promise_explain(&p, (Shape){ 2, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 3, 0);
}

static void test_beside_all(void) {
        Promise p = { .whole = whole, .n_holders = 1, .holders = { { .all = true } } };

        assert_shape(promise_must_be_free(&p), 6, 3);
        p.number = 2;
        assert_shape(promise_must_be_free(&p), 6, 3);
        p.holders[0].opened.takes = (Shape){ 5, 1 };
        assert_shape(promise_must_be_free(&p), 2, 2);
}

/* ---- what is not ---- */

static void test_one_holder(void) {
        Promise p = { .whole = whole,
                      .number = 2,
                      .n_holders = 1,
                      .holders = { { .number = 4, .perhaps = 8 } } };

        g_assert_true(promise_explain(&p, (Shape){ 3, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 3, 0);
        g_assert_true(promise_explain(&p, (Shape){ 5, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 2, 0);
        /* one of them may be a stranger's, or all */
        g_assert_true(promise_explain(&p, (Shape){ 3, 0 }, 1));
        assert_shape(promise_must_be_free(&p), 4, 0);
        g_assert_true(promise_explain(&p, (Shape){ 3, 0 }, UINT_MAX));
        assert_shape(promise_must_be_free(&p), 6, 0);
}

static void test_somebody_unseen(void) {
        Promise p = { .whole = whole,
                      .number = 2,
                      .n_holders = 1,
                      .holders = { { .number = 4, .perhaps = 1 } } };

        g_assert_false(promise_explain(&p, (Shape){ 3, 0 }, 1));
        assert_shape(promise_must_be_free(&p), 6, 0);
        g_assert_true(promise_explain(&p, (Shape){ 3, 0 }, 2));
        assert_shape(promise_must_be_free(&p), 5, 0);
        p.n_holders = 0;
        g_assert_false(promise_explain(&p, (Shape){ 1, 0 }, 0));
        g_assert_false(promise_explain(&p, (Shape){ 0, 1 }, 0));
}

/* Of two who may have opened what is taken one may have gone beyond their number. */
static void test_two_holders(void) {
        Promise p = { .whole = whole,
                      .number = 1,
                      .n_holders = 2,
                      .holders = { { .number = 2, .perhaps = 8 }, { .number = 3, .perhaps = 0 } } };

        g_assert_true(promise_explain(&p, (Shape){ 4, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 4, 0);
        p.holders[1].perhaps = 6;
        g_assert_true(promise_explain(&p, (Shape){ 5, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 4, 0);
        p.holders[0].perhaps = 2;
        p.holders[1].perhaps = 3;
        g_assert_true(promise_explain(&p, (Shape){ 5, 0 }, 0));
        assert_shape(promise_must_be_free(&p), 1, 0);
}

static void test_all_of_it(void) {
        Promise p = { .whole = whole,
                      .n_holders = 1,
                      .holders = { { .all = true, .perhaps = 4 } } };

        g_assert_true(promise_explain(&p, (Shape){ 3, 1 }, 0));
        assert_shape(promise_must_be_free(&p), 3, 2);
        assert_shape(promise_of(&p, (Shape){ 3, 2 }), 3, 2);
        g_assert_true(promise_explain(&p, (Shape){ 3, 1 }, 1));
        assert_shape(promise_must_be_free(&p), 4, 3);
        g_assert_false(promise_explain(&p, (Shape){ 5, 1 }, 1));
}

/* Each of those who have cycles may be the one whose event has the fixed counter. */
typedef struct History {
        Promise promise;
        unsigned hidden[4]; /* of each holder */
        unsigned known, strangers, taken;
        bool cycles[4];
        unsigned most, least;
} History;

static unsigned history_needs(const History *h, size_t has_cycles) {
        unsigned sum = h->promise.number;

        for (size_t i = 0; i < h->promise.n_holders; i++) {
                const PromiseHolder *holder = &h->promise.holders[i];

                sum += holder->number -
                       MIN(holder->number, h->hidden[i] + holder->opened.takes.general +
                                                   (h->cycles[i] && i != has_cycles));
        }
        return sum;
}

static void history_add_holder(History *h, size_t i) {
        PromiseHolder *holder = &h->promise.holders[i];

        h->hidden[i] = (unsigned) g_test_rand_int_range(0, 3);
        h->cycles[i] = g_test_rand_bit();
        *holder = (PromiseHolder){
                .number = (unsigned) g_test_rand_int_range(1, 4),
                .opened = { .takes = { (unsigned) g_test_rand_int_range(0, 2), h->cycles[i] },
                            .spill = { 1 } },
                .perhaps = h->hidden[i] + (unsigned) g_test_rand_int_range(0, 3),
        };
        h->taken += h->hidden[i];
        h->known += holder->opened.takes.general + h->cycles[i];
}

static History history_new(void) {
        History h = { .promise = { .whole = whole,
                                   .number = (unsigned) g_test_rand_int_range(1, 4),
                                   .n_holders = (size_t) g_test_rand_int_range(0, 4) },
                      .strangers = (unsigned) g_test_rand_int_range(0, 3) };
        bool any = false;

        h.taken = h.strangers;
        for (size_t i = 0; i < h.promise.n_holders; i++) {
                history_add_holder(&h, i);
                any |= h.cycles[i];
        }
        h.known -= any;
        for (size_t i = 0; i < h.promise.n_holders; i++)
                if (h.cycles[i])
                        h.most = MAX(h.most, history_needs(&h, i));
        if (!any)
                h.most = history_needs(&h, SIZE_MAX);
        return h;
}

/* Whatever holders and strangers have opened: a promise that is explained is true, and where
 * nothing is hidden no more is asked for than may be needed. */
static void test_no_history_lies(void) {
        for (unsigned i = 0; i < 200000; i++) {
                History h = history_new();
                unsigned must;

                if (h.taken + h.known > 6)
                        continue;
                must = promise_must_be_free(&h.promise).general;
                g_assert_cmpuint(must, >=, h.most);
                if (h.taken == 0)
                        g_assert_cmpuint(must, ==, h.most);
                (void) promise_explain(&h.promise, (Shape){ .general = h.taken },
                                       h.strangers + (unsigned) g_test_rand_int_range(0, 2));
                must = promise_must_be_free(&h.promise).general;
                g_assert_cmpuint(must, >=, h.most);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/promise/all-is-general-and-fixed", test_alone);
        g_test_add_func("/promise/numbers-add-up", test_numbers_add_up);
        g_test_add_func("/promise/all-is-what-no-number-has", test_all_beside_a_number);
        g_test_add_func("/promise/two-have-an-event-of-one-fixed-counter",
                        test_the_same_fixed_counter);
        g_test_add_func("/promise/an-event-that-nothing-counts-takes-nothing",
                        test_nothing_in_place_of_it);
        g_test_add_func("/promise/what-its-holder-has-open-need-not-be-free", test_measured_again);
        g_test_add_func("/promise/a-number-beside-all", test_beside_all);
        g_test_add_func("/promise/what-one-holder-has-opened-is-not-missing", test_one_holder);
        g_test_add_func("/promise/who-is-unseen-is-no-holder", test_somebody_unseen);
        g_test_add_func("/promise/beyond-the-own-number-is-nobody-s-promise", test_two_holders);
        g_test_add_func("/promise/what-holders-of-all-have-opened-is-not-missing", test_all_of_it);
        g_test_add_func("/promise/what-is-explained-is-true", test_no_history_lies);
        return g_test_run();
}
