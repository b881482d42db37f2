/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/event-units.h"

#include "perf/event/test-fake-sysfs.h"

#include "machine.h"

static void assert_unit(const Event *e, size_t unit, const char *pmu, uint32_t type,
                        uint64_t config) {
        const Event *on = event_on(e, unit);

        g_assert_cmpstr(on->pmu->name, ==, pmu);
        g_assert_cmpuint(on->attr.type, ==, type);
        g_assert_cmphex(on->attr.config, ==, config);
        g_assert_cmpstr(on->name, ==, e->name);
}

static void assert_cpus(const Event *e, const char *expected) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_free_ char *text = NULL;

        g_assert_cmpint(event_units_cpus(e, &cpus), ==, 0);
        g_assert_cmpint(cpuset_format(&cpus, &text), ==, 0);
        g_assert_cmpstr(text, ==, expected);
}

static void test_generic_events_are_on_every_core_pmu(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));
        Event e = parse(&m, "cycles:u");

        g_assert_cmpuint(event_units(&e), ==, 2);
        assert_unit(&e, 0, "cpu_core", PERF_TYPE_HARDWARE, 0x400000000);
        assert_unit(&e, 1, "cpu_atom", PERF_TYPE_HARDWARE, 0xa00000000);
        g_assert_true(event_on(&e, 1)->attr.exclude_kernel);
        g_assert_false(e.by_cpu);
        event_done(&e);
        e = parse(&m, "LLC-loads");
        g_assert_cmpuint(event_units(&e), ==, 2);
        assert_unit(&e, 1, "cpu_atom", PERF_TYPE_HW_CACHE, 0xa00000002);
        event_done(&e);
        e = parse(&m, "r1c0");
        g_assert_cmpuint(event_units(&e), ==, 2);
        assert_unit(&e, 0, "cpu_core", 4, 0x1c0);
        assert_unit(&e, 1, "cpu_atom", 10, 0x1c0);
        event_done(&e);
        fake_sysfs_done(&m);
}

/* A kernel without the extended type finds the PMU of a CPU all the same. */
static void test_arm_needs_the_type_for_processes_alone(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("arm-big-little"));
        Event e = parse(&m, "instructions");

        g_assert_cmpuint(event_units(&e), ==, 2);
        g_assert_true(e.by_cpu);
        g_assert_true(e.others[0].by_cpu);
        event_done(&e);
        fake_sysfs_done(&m);
}

static void test_who_names_a_pmu_gets_that_one(void) {
        static const char *const events[] = { "cpu_atom/cpu-cycles/", "cpu_core/event=0x3c/",
                                              "page-faults", "mem:0x1000/8:w" };
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i]);

                g_assert_cmpuint(event_units(&e), ==, 1);
        }
        fake_sysfs_done(&m);
}

static void test_a_name_without_a_number_is_every_instance(void) {
        static const char *const events[] = { "uncore_imc/cas_count_read/", "imc/cas_count_read/" };
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i]);
                _cleanup_(event_done) Event copy = EVENT_NULL;

                g_assert_cmpuint(event_units(&e), ==, 16);
                g_assert_cmpstr(e.unit, ==, "MiB");
                for (size_t unit = 0; unit < 16; unit++) {
                        g_autofree char *pmu = g_strdup_printf("uncore_imc_%zu", unit);

                        assert_unit(&e, unit, pmu, pmu_table_find(&m.pmus, pmu)->type, 0xcf05);
                }
                g_assert_cmpint(event_copy(&copy, &e), ==, 0);
                assert_unit(&copy, 15, "uncore_imc_15", e.others[14].attr.type, 0xcf05);
        }
        assert_refused(&m, "uncore_imc/no_such/", REFUSAL_NO_SUCH_EVENT, "uncore_imc_0|'no_such'");
        assert_refused(&m, "uncore_imd/event=1/", REFUSAL_NO_SUCH_EVENT, "'uncore_imd'");
        fake_sysfs_done(&m);
}

static void test_cpus_are_those_of_all_pmus(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));
        Event e = parse(&m, "cycles");
        _cleanup_free_ char *all = NULL;

        g_assert_cmpint(cpuset_format(&m.pmus.possible, &all), ==, 0);
        assert_cpus(&e, all);
        event_done(&e);
        fake_sysfs_done(&m);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/event-units/generic-events-are-on-every-core-pmu",
                        test_generic_events_are_on_every_core_pmu);
        g_test_add_func("/event-units/arm-needs-the-type-for-processes-alone",
                        test_arm_needs_the_type_for_processes_alone);
        g_test_add_func("/event-units/who-names-a-pmu-gets-that-one",
                        test_who_names_a_pmu_gets_that_one);
        g_test_add_func("/event-units/a-name-without-a-number-is-every-instance",
                        test_a_name_without_a_number_is_every_instance);
        g_test_add_func("/event-units/cpus-are-those-of-all-pmus", test_cpus_are_those_of_all_pmus);
        return g_test_run();
}
