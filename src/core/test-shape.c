/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/shape.h"

#include <glib.h>

static void test_amounts(void) {
        const Shape whole = { 4, 7 }, part = { 3, 2 }, more = { 5, 2 }, other = { 3, 8 };
        Shape left = shape_without(whole, more), both = shape_common(whole, (Shape){ 6, 10 });

        g_assert_true(shape_contains(whole, part));
        g_assert_true(shape_contains(whole, whole));
        g_assert_false(shape_contains(whole, more));
        g_assert_false(shape_contains(whole, other));
        g_assert_cmpuint(left.general, ==, 0);
        g_assert_cmpuint(left.fixed, ==, 5);
        g_assert_cmpuint(both.general, ==, 4);
        g_assert_cmpuint(both.fixed, ==, 2);
        g_assert_true(shape_is_empty(SHAPE_NULL));
        g_assert_false(shape_is_empty((Shape){ 0, 1 }));
        g_assert_false(shape_is_empty((Shape){ 1, 0 }));
}

/* The first has the fixed counter, later ones what they take instead. */
static void test_uses(void) {
        const CounterUse cycles = { .takes.fixed = 2, .spill = { 0, 1 } };
        const CounterUse wide = { .takes.fixed = 2, .spill = { 0, 2 } };
        const CounterUse slots = { .takes.fixed = 4, .spill = { 0, 0, SHAPE_NO_SPILL } };
        const CounterUse branches = { .takes.general = 1 };
        CounterUse sum = {};

        g_assert_cmpuint(counter_use_general(&cycles, 0), ==, 0);
        g_assert_cmpuint(counter_use_general(&cycles, 5), ==, 0);
        g_assert_cmpuint(counter_use_general(&cycles, 2), ==, 1);
        g_assert_cmpuint(counter_use_general(&slots, 3), ==, 0);
        g_assert_cmpuint(counter_use_general(&slots, 7), ==, SHAPE_NO_SPILL);
        counter_use_add(&sum, &cycles);
        counter_use_add(&sum, &branches);
        g_assert_cmpuint(sum.takes.general, ==, 1);
        g_assert_cmpuint(sum.takes.fixed, ==, 2);
        counter_use_add(&sum, &wide);
        counter_use_add(&sum, &slots);
        g_assert_cmpuint(sum.takes.general, ==, 3);
        g_assert_cmpuint(sum.takes.fixed, ==, 6);
        g_assert_cmpuint(counter_use_general(&sum, 2), ==, 4);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/shape/amounts", test_amounts);
        g_test_add_func("/shape/uses-add-up", test_uses);
        return g_test_run();
}
