/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/cpuset.h"

#include <glib.h>
#include <string.h>

static void assert_list(const char *list, const char *expected) {
        _cleanup_(cpuset_done) CpuSet s = CPUSET_NULL;
        _cleanup_free_ char *text = NULL;

        g_assert_cmpint(cpuset_parse(&s, list, NULL), ==, 0);
        g_assert_cmpint(cpuset_format(&s, &text), ==, 0);
        g_assert_cmpstr(text, ==, expected);
}

static void test_lists_as_sys_writes_them(void) {
        assert_list("0-3,8,10-11", "0-3,8,10-11");
        assert_list("0\n", "0");
        assert_list("", "");
        assert_list("\n", "");
        assert_list("0-8191", "0-8191");
        assert_list("62-65,127,128", "62-65,127-128");
}

static void test_order_and_repetition_do_not_matter(void) {
        assert_list("9,1,3-4,2,1-2", "1-4,9");
        assert_list("007", "7");
}

static void test_wrong_lists_are_refused_by_name(void) {
        static const struct {
                const char *list, *named;
        } wrong[] = {
                { "0,x", "'x'" },
                { ",", "','" },
                { "0,,1", "',1'" },
                { "0,", "not a list" },
                { "0,\n", "not a list" },
                { "3-1", "'3-1'" },
                { "1-", "'1-'" },
                { "-1", "'-1'" },
                { "1-2-3", "'1-2-3'" },
                { " 1", "' 1'" },
                { "1 ", "'1 '" },
                { "1\n\n", "'1" },
                { "0,8192", "'8192' is not below 8192" },
                { "0-99999999999999999999,1", "'0-99999999999999999999' is not below 8192" },
        };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                CpuSet s = { .n_words = 77 };
                Refusal why = REFUSAL_NULL;

                g_assert_cmpint(cpuset_parse(&s, wrong[i].list, &why), ==, REFUSAL_INVALID_ARGS);
                g_assert_cmpint(why.code, ==, REFUSAL_INVALID_ARGS);
                g_assert_nonnull(strstr(why.text, wrong[i].named));
                g_assert_cmpuint(s.n_words, ==, 77); /* untouched */
        }
}

static void test_longest_list_is_read(void) {
        g_autoptr(GString) list = g_string_new("0-8191");
        _cleanup_(cpuset_done) CpuSet s = CPUSET_NULL;

        while (list->len + strlen(",0-8191") <= CPUSET_LIST_MAX)
                g_string_append(list, ",0-8191");
        g_assert_cmpint(cpuset_parse(&s, list->str, NULL), ==, 0);
        g_assert_cmpuint(cpuset_count(&s), ==, CPUSET_CPUS_MAX);
}

static void test_longer_lists_are_refused(void) {
        g_autofree char *list = g_strnfill(CPUSET_LIST_MAX + 1, '1');
        CpuSet s = CPUSET_NULL;

        g_assert_cmpint(cpuset_parse(&s, list, NULL), ==, REFUSAL_INVALID_ARGS);
        g_assert_cmpuint(s.n_words, ==, 0);
}

static void test_numbers_end_at_the_kernels_limit(void) {
        _cleanup_(cpuset_done) CpuSet s = CPUSET_NULL;

        g_assert_cmpint(cpuset_add(&s, CPUSET_CPUS_MAX - 1), ==, 0);
        g_assert_cmpint(cpuset_add(&s, CPUSET_CPUS_MAX), ==, -ERANGE);
        g_assert_cmpint(cpuset_add(&s, UINT32_MAX), ==, -ERANGE);
        g_assert_cmpuint(cpuset_count(&s), ==, 1);
        g_assert_false(cpuset_has(&s, UINT32_MAX));
        cpuset_remove(&s, UINT32_MAX);
}

/* Random sets against arrays of bool. */

#define N_CPUS 200u

static void set_random(CpuSet *s, bool *model) {
        unsigned n = (unsigned) g_test_rand_int_range(0, 12);

        memset(model, 0, N_CPUS * sizeof(*model));
        for (unsigned i = 0; i < n; i++) {
                unsigned first = (unsigned) g_test_rand_int_range(0, N_CPUS);
                unsigned length = (unsigned) g_test_rand_int_range(0, 70);
                unsigned last = MIN(first + length, N_CPUS - 1);
                g_autofree char *list = g_strdup_printf("%u-%u", first, last);
                CpuSet range;

                g_assert_cmpint(cpuset_parse(&range, list, NULL), ==, 0);
                for (unsigned cpu = first; cpu <= last; cpu++) {
                        bool add = g_test_rand_int_range(0, 10) > 0;

                        g_assert_true(cpuset_has(&range, cpu));
                        if (add)
                                g_assert_cmpint(cpuset_add(s, cpu), ==, 0);
                        else
                                cpuset_remove(s, cpu);
                        model[cpu] = add;
                }
                g_assert_cmpuint(cpuset_count(&range), ==, last - first + 1);
                cpuset_done(&range);
        }
}

static void assert_same(const CpuSet *s, const bool *model) {
        unsigned n = 0;

        for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
                g_assert_true(cpuset_has(s, cpu) == model[cpu]);
                n += model[cpu];
        }
        g_assert_cmpuint(cpuset_count(s), ==, n);
        g_assert_true(cpuset_is_empty(s) == (n == 0));
        CPU_FOREACH (cpu, s) {
                g_assert_true(model[cpu]);
                n--;
        }
        g_assert_cmpuint(n, ==, 0);
}

static void assert_same_relations(const CpuSet *a, const CpuSet *b, const bool *x, const bool *y) {
        bool equal = true, meet = false, part = true;

        for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
                equal = equal && x[cpu] == y[cpu];
                meet = meet || (x[cpu] && y[cpu]);
                part = part && (y[cpu] || !x[cpu]);
        }
        g_assert_true(cpuset_equal(a, b) == equal);
        g_assert_true(cpuset_intersects(a, b) == meet);
        g_assert_true(cpuset_is_subset(a, b) == part);
}

static void test_agrees_with_arrays(void) {
        for (int i = 0; i < 3000; i++) {
                _cleanup_(cpuset_done) CpuSet a = CPUSET_NULL, b = CPUSET_NULL, c = CPUSET_NULL;
                _cleanup_(cpuset_done) CpuSet again = CPUSET_NULL;
                _cleanup_free_ char *text = NULL;
                bool x[N_CPUS], y[N_CPUS], z[N_CPUS];

                set_random(&a, x);
                set_random(&b, y);
                assert_same(&a, x);
                assert_same_relations(&a, &b, x, y);
                g_assert_cmpint(cpuset_intersect(&c, &a, &b), ==, 0);
                for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
                        z[cpu] = x[cpu] && y[cpu];
                assert_same(&c, z);
                assert_same_relations(&c, &a, z, x);
                g_assert_cmpint(cpuset_format(&a, &text), ==, 0);
                g_assert_cmpint(cpuset_parse(&again, text, NULL), ==, 0);
                g_assert_true(cpuset_equal(&a, &again));
        }
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/cpuset/lists-as-sys-writes-them", test_lists_as_sys_writes_them);
        g_test_add_func("/cpuset/order-and-repetition-do-not-matter",
                        test_order_and_repetition_do_not_matter);
        g_test_add_func("/cpuset/wrong-lists-are-refused-by-name",
                        test_wrong_lists_are_refused_by_name);
        g_test_add_func("/cpuset/longest-list-is-read", test_longest_list_is_read);
        g_test_add_func("/cpuset/longer-lists-are-refused", test_longer_lists_are_refused);
        g_test_add_func("/cpuset/numbers-end-at-the-kernels-limit",
                        test_numbers_end_at_the_kernels_limit);
        g_test_add_func("/cpuset/agrees-with-arrays", test_agrees_with_arrays);
        return g_test_run();
}
