/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/reading.h"

#include <glib.h>

static Reading sum_of(const Count *parts, size_t n) {
        Reading sum = READING_NULL;

        for (size_t i = 0; i < n; i++)
                reading_add(&sum, &parts[i]);
        return sum;
}

/* One CPU is busy and shared by four, the other idle and not shared: the sums say 2/5 of the time,
 * which is true of neither. */
static void test_each_part_is_scaled_by_itself(void) {
        static const Count parts[] = { { 250, 1000, 250 }, { 10, 1000, 1000 } };
        Reading sum = sum_of(parts, 2);

        g_assert_cmpuint(sum.value, ==, 260);
        g_assert_cmpuint(sum.enabled, ==, 2000);
        g_assert_cmpuint(sum.running, ==, 1250);
        g_assert_cmpuint(sum.estimate, ==, 1010);
        g_assert_cmpint(sum.quality, ==, QUALITY_SCALED);
}

static void test_exact_is_its_value(void) {
        static const Count parts[] = { { 7, 1000, 1000 }, { 9, 3, 3 } };
        Reading sum = sum_of(parts, 2);

        g_assert_cmpuint(sum.estimate, ==, 16);
        g_assert_cmpint(sum.quality, ==, QUALITY_EXACT);
}

static void test_the_lowest_quality_is_that_of_the_sum(void) {
        static const Count parts[] = { { 7, 1000, 1000 }, { 0, 1000, 0 }, { 1, 4, 2 } };
        Reading sum = sum_of(parts, 3);

        g_assert_cmpuint(sum.estimate, ==, 9);
        g_assert_cmpint(sum.quality, ==, QUALITY_NOT_COUNTED);
}

static void test_what_was_never_enabled_is_no_part(void) {
        static const Count parts[] = { { 7, 1000, 1000 }, { 0, 0, 0 } };

        g_assert_cmpint(sum_of(parts, 2).quality, ==, QUALITY_EXACT);
}

static void test_large_numbers_do_not_wrap(void) {
        static const Count large = { UINT64_C(1) << 60, UINT64_C(1) << 62, UINT64_C(1) << 61 },
                           too_large = { UINT64_C(1) << 63, 4, 1 };

        g_assert_cmpuint(count_estimate(&large), ==, UINT64_C(1) << 61);
        g_assert_cmpuint(count_estimate(&too_large), ==, UINT64_MAX);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/reading/each-part-is-scaled-by-itself",
                        test_each_part_is_scaled_by_itself);
        g_test_add_func("/reading/exact-is-its-value", test_exact_is_its_value);
        g_test_add_func("/reading/the-lowest-quality-is-that-of-the-sum",
                        test_the_lowest_quality_is_that_of_the_sum);
        g_test_add_func("/reading/what-was-never-enabled-is-no-part",
                        test_what_was_never_enabled_is_no_part);
        g_test_add_func("/reading/large-numbers-do-not-wrap", test_large_numbers_do_not_wrap);
        return g_test_run();
}
