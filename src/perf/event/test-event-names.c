/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/event.h"

#include "machine.h"
#include "perf/event/test-fake-sysfs.h"

typedef struct Names {
        const FakeSysfs *sysfs;
        GPtrArray *names;
} Names;

static int collect(void *userdata, const char *name, const char *pmu, const char *description) {
        Names *n = userdata;
        _cleanup_(event_done) Event e = EVENT_NULL;
        Refusal why = REFUSAL_NULL;
        int r = event_parse(&n->sysfs->pmus, name, &e, &why);

        /* an event with parameters is listed without them */
        if (r != 0)
                g_assert_nonnull(strstr(description, "=?"));
        else
                g_assert_cmpstr(e.pmu->name, ==, pmu);
        g_assert_nonnull(description);
        g_ptr_array_add(n->names, g_strdup(name));
        return 0;
}

static GPtrArray *list(const FakeSysfs *m, const char *pattern) {
        Names n = { m, g_ptr_array_new_with_free_func(g_free) };

        g_assert_cmpint(event_list(&m->pmus, pattern, collect, &n), ==, 0);
        return n.names;
}

static bool has_name(GPtrArray *names, const char *name) {
        return g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL);
}

static void test_every_name_of_the_list_is_an_event_of_its_pmu(void) {
        static const char *const trees[] = { "intel-hybrid", "amd-uncore", "arm-big-little",
                                             "server-256", NULL };

        for (size_t i = 0; i < G_N_ELEMENTS(trees); i++) {
                FakeSysfs m = fake_sysfs_of(trees[i] ? fixture_tree(trees[i]) : NULL);
                g_autoptr(GPtrArray) names = list(&m, "*");
                g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

                g_test_message("%s: %u names", trees[i] ? trees[i] : "here", names->len);
                for (guint k = 0; k < names->len; k++)
                        g_assert_true(g_hash_table_add(seen, names->pdata[k]));
                g_assert_true(has_name(names, "page-faults"));
                g_assert_true(has_name(names, "perf::PERF_COUNT_SW_CPU_CLOCK"));
                fake_sysfs_done(&m);
        }
}

static void test_the_list_has_what_this_machine_can_count(void) {
        FakeSysfs hybrid = fake_sysfs_of(fixture_tree("intel-hybrid")),
                  none = fake_sysfs_of(fixture_empty());
        g_autoptr(GPtrArray) all = list(&hybrid, "*"), nothing = list(&none, "*");

        g_assert_true(has_name(all, "cycles"));
        g_assert_true(has_name(all, "L1-dcache-load-misses"));
        g_assert_true(has_name(all, "cpu_atom/mem-loads/"));
        g_assert_true(has_name(all, "power/energy-pkg/"));
        g_assert_false(has_name(all, "power/energy-pkg.scale/"));
        g_assert_cmpuint(nothing->len, ==, 0);
        fake_sysfs_done(&hybrid);
        fake_sysfs_done(&none);
}

static void test_patterns_are_for_the_whole_name_in_any_case(void) {
        static const struct {
                const char *pattern;
                unsigned n;
        } patterns[] = {
                { "page-faults", 1 },
                { "PAGE-faults", 1 },
                { "faults", 1 },
                { "*-faults", 5 },
                { "page", 0 },
                { "cpu_*/cpu-cycles/", 2 },
                { "*l1-DCACHE-load*", 2 },
                { "[cd]s", 1 },
                { "power/*", 1 },
                { "", 0 },
                { "cpu_atom/instruction?/", 1 },
        };
        g_autofree char *longer = g_strnfill(EVENT_NAME_MAX + 1, '*');
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));

        for (size_t i = 0; i < G_N_ELEMENTS(patterns); i++) {
                g_autoptr(GPtrArray) names = list(&m, patterns[i].pattern);

                g_test_message("%s", patterns[i].pattern);
                g_assert_cmpuint(names->len, ==, patterns[i].n);
        }
        g_assert_cmpint(event_list(&m.pmus, longer, collect, NULL), ==, 0);
        fake_sysfs_done(&m);
}

static int stop(void *userdata, const char *name, const char *pmu, const char *description) {
        return ++*(int *) userdata == 3 ? -EXDEV : 0;
}

static void test_the_visitor_stops_the_list(void) {
        static const char *const patterns[] = { "*", "uncore*", "perf::*" };
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        for (size_t i = 0; i < G_N_ELEMENTS(patterns); i++) {
                int calls = 0;

                g_assert_cmpint(event_list(&m.pmus, patterns[i], stop, &calls), ==, -EXDEV);
                g_assert_cmpint(calls, ==, 3);
        }
        fake_sysfs_done(&m);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_SYSFS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/event-names/every-name-of-the-list-is-an-event-of-its-pmu",
                        test_every_name_of_the_list_is_an_event_of_its_pmu);
        g_test_add_func("/event-names/the-list-has-what-this-machine-can-count",
                        test_the_list_has_what_this_machine_can_count);
        g_test_add_func("/event-names/patterns-are-for-the-whole-name-in-any-case",
                        test_patterns_are_for_the_whole_name_in_any_case);
        g_test_add_func("/event-names/the-visitor-stops-the-list", test_the_visitor_stops_the_list);
        return g_test_run();
}
