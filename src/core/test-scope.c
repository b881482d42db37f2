/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/scope.h"

#include <glib.h>

static void scope_extend(Scope *s, unsigned pmu, const char *list) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        g_assert_cmpint(scope_add(s, pmu, &cpus), ==, 0);
}

static void test_parts_are_sorted_and_joined(void) {
        _cleanup_(scope_done) Scope s = SCOPE_NULL;

        scope_extend(&s, 7, "0-1");
        scope_extend(&s, 2, "5");
        scope_extend(&s, 4, "1");
        scope_extend(&s, 7, "1,100");
        g_assert_cmpuint(s.n_parts, ==, 3);
        g_assert_cmpuint(s.parts[0].pmu, ==, 2);
        g_assert_cmpuint(s.parts[1].pmu, ==, 4);
        g_assert_cmpuint(s.parts[2].pmu, ==, 7);
        g_assert_cmpuint(cpuset_count(&s.parts[2].cpus), ==, 3);
}

static void test_no_cpus_are_no_part(void) {
        _cleanup_(scope_done) Scope s = SCOPE_NULL;

        scope_extend(&s, 1, "");
        g_assert_cmpuint(s.n_parts, ==, 0);
}

static void test_has_its_slots_and_no_others(void) {
        _cleanup_(scope_done) Scope s = SCOPE_NULL;

        scope_extend(&s, 3, "64");
        g_assert_true(scope_has(&s, 3, 64));
        g_assert_false(scope_has(&s, 3, 0));
        g_assert_false(scope_has(&s, 2, 64));
        g_assert_null(scope_find(&s, 4));
}

static void test_overlap_is_a_common_slot(void) {
        _cleanup_(scope_done) Scope a = SCOPE_NULL, b = SCOPE_NULL, empty = SCOPE_NULL;

        scope_extend(&a, 1, "0-3");
        scope_extend(&a, 5, "0-3");
        scope_extend(&b, 0, "0-3");
        scope_extend(&b, 3, "0-3");
        scope_extend(&b, 5, "4-99");
        g_assert_false(scope_overlaps(&a, &b));
        g_assert_false(scope_overlaps(&b, &a));
        g_assert_false(scope_overlaps(&a, &empty));
        g_assert_false(scope_overlaps(&empty, &empty));
        scope_extend(&a, 5, "99");
        g_assert_true(scope_overlaps(&a, &b));
        g_assert_true(scope_overlaps(&b, &a));
}

static void test_copy_is_its_own(void) {
        _cleanup_(scope_done) Scope a = SCOPE_NULL, b = SCOPE_NULL;

        scope_extend(&a, 1, "0-3");
        scope_extend(&a, 5, "70");
        g_assert_cmpint(scope_copy(&b, &a), ==, 0);
        scope_done(&a);
        g_assert_cmpuint(b.n_parts, ==, 2);
        g_assert_true(scope_has(&b, 1, 3));
        g_assert_true(scope_has(&b, 5, 70));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/scope/parts-are-sorted-and-joined", test_parts_are_sorted_and_joined);
        g_test_add_func("/scope/no-cpus-are-no-part", test_no_cpus_are_no_part);
        g_test_add_func("/scope/has-its-slots-and-no-others", test_has_its_slots_and_no_others);
        g_test_add_func("/scope/overlap-is-a-common-slot", test_overlap_is_a_common_slot);
        g_test_add_func("/scope/copy-is-its-own", test_copy_is_its_own);
        return g_test_run();
}
