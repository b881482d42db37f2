/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/pmu.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "machine.h"
#include "perf/event/test-fake-sysfs.h"

static void assert_cpus(const CpuSet *cpus, const char *list) {
        g_autofree char *text = NULL;

        g_assert_cmpint(cpuset_format(cpus, &text), ==, 0);
        g_assert_cmpstr(text, ==, list);
}

static void test_kinds_follow_from_what_sysfs_shows(void) {
        static const struct {
                const char *tree, *name;
                uint32_t type;
                PmuKind kind;
                const char *cpus;
        } units[] = {
                { "intel-hybrid", "cpu_core", 4, PMU_CORE, "0-15" },
                { "intel-hybrid", "cpu_atom", 10, PMU_CORE, "16-23" },
                { "intel-hybrid", "software", 1, PMU_SOFTWARE, "0-23" },
                { "intel-hybrid", "breakpoint", 5, PMU_BREAKPOINT, "0-23" },
                { "intel-hybrid", "tracepoint", 2, PMU_TRACEPOINT, "0-23" },
                { "intel-hybrid", "kprobe", 6, PMU_TRACEPOINT, "0-23" },
                { "intel-hybrid", "uprobe", 7, PMU_TRACEPOINT, "0-23" },
                { "intel-hybrid", "msr", 11, PMU_OTHER, "0-23" },
                { "intel-hybrid", "intel_pt", 9, PMU_OTHER, "0-23" },
                { "intel-hybrid", "power", 19, PMU_UNCORE, "0" },
                { "intel-hybrid", "cstate_core", 17, PMU_UNCORE, "0,2,4,6,8,10,12,14,16-23" },
                { "intel-hybrid", "uncore_cbox_11", 31, PMU_UNCORE, "0" },
                { "amd-uncore", "cpu", 4, PMU_CORE, "0-31" },
                { "amd-uncore", "amd_l3", 13, PMU_UNCORE, "0,8" },
                { "amd-uncore", "ibs_op", 10, PMU_OTHER, "0-31" },
                { "arm-big-little", "armv8_cortex_a53", 9, PMU_CORE, "0-3" },
                { "arm-big-little", "armv8_cortex_a72", 10, PMU_CORE, "4-5" },
                { "arm-big-little", "arm_dsu_0", 11, PMU_UNCORE, "0" },
                { "arm-big-little", "cs_etm", 8, PMU_OTHER, "0-5" },
                { "server-256", "cpu", 4, PMU_CORE, "0-511" },
                { "server-256", "uncore_cha_59", 79, PMU_UNCORE, "0,64" },
                { "server-256", "uncore_hbm_0", 201, PMU_UNCORE, "" },
        };
        FakeSysfs m = {};

        for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
                const Pmu *pmu;

                fake_sysfs_change(&m, units[i].tree);
                pmu = pmu_table_find(&m.pmus, units[i].name);
                g_test_message("%s: %s", units[i].tree, units[i].name);
                g_assert_nonnull(pmu);
                g_assert_cmpstr(pmu->name, ==, units[i].name);
                g_assert_cmpuint(pmu->type, ==, units[i].type);
                g_assert_cmpstr(pmu_kind_name(pmu->kind), ==, pmu_kind_name(units[i].kind));
                assert_cpus(&pmu->cpus, units[i].cpus);
                g_assert_false(pmu->measured);
                g_assert_cmpstr(pmu->probed, ==, "");
        }
        fake_sysfs_done(&m);
}

static void test_only_what_reserves_at_open_closes_to_yield(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));

        for (size_t i = 0; i < m.pmus.n_pmus; i++) {
                const Pmu *pmu = &m.pmus.pmus[i];

                g_assert_true(pmu->closes_to_yield ==
                              (pmu->kind == PMU_BREAKPOINT || pmu->kind == PMU_UNCORE ||
                               pmu->kind == PMU_OTHER));
        }
        fake_sysfs_done(&m);
}

static void test_table_is_sorted_and_every_unit_is_found_at_its_index(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        /* 5 of the kernel's own, cpu, msr, power, cha, imc, iio, m2m, m3upi, pcu, ubox, hbm, 24x7
         */
        g_assert_cmpuint(m.pmus.n_pmus, ==, 5 + 3 + 60 + 16 + 12 + 32 + 4 + 2 + 3);
        for (size_t i = 0; i < m.pmus.n_pmus; i++) {
                g_assert_cmpuint(m.pmus.pmus[i].index, ==, i);
                g_assert_true(pmu_table_find(&m.pmus, m.pmus.pmus[i].name) == &m.pmus.pmus[i]);
                if (i > 0)
                        g_assert_cmpstr(m.pmus.pmus[i - 1].name, <, m.pmus.pmus[i].name);
        }
        g_assert_null(pmu_table_find(&m.pmus, "uncore_cha_60"));
        g_assert_null(pmu_table_find(&m.pmus, ""));
        fake_sysfs_done(&m);
}

static void test_generic_events_go_to_a_core_unit(void) {
        static const struct {
                const char *tree;
                uint32_t type;
                uint64_t config;
                const char *pmu; /* NULL: none */
        } events[] = {
                { "intel-hybrid", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "cpu_core" },
                { "intel-hybrid", PERF_TYPE_HARDWARE, UINT64_C(10) << 32, "cpu_atom" },
                { "intel-hybrid", PERF_TYPE_HARDWARE, UINT64_C(4) << 32, "cpu_core" },
                { "intel-hybrid", PERF_TYPE_HW_CACHE, UINT64_C(10) << 32 | 0x10002, "cpu_atom" },
                { "intel-hybrid", PERF_TYPE_HARDWARE, UINT64_C(19) << 32, NULL },
                { "intel-hybrid", PERF_TYPE_HARDWARE, UINT64_C(77) << 32, NULL },
                { "intel-hybrid", PERF_TYPE_RAW, 0x3c, "cpu_core" },
                { "intel-hybrid", 10, 0x3c, "cpu_atom" },
                { "intel-hybrid", 77, 0, NULL },
                /* AMD's event numbers have bits above 32: they choose no unit */
                { "amd-uncore", PERF_TYPE_RAW, UINT64_C(0x10000001c), "cpu" },
                { "amd-uncore", PERF_TYPE_SOFTWARE, 0, "software" },
                { "arm-big-little", PERF_TYPE_HARDWARE, 0, "armv8_cortex_a53" },
                { "arm-big-little", PERF_TYPE_HARDWARE, UINT64_C(10) << 32, "armv8_cortex_a72" },
                { "arm-big-little", PERF_TYPE_RAW, 0x11, "armv8_cortex_a53" },
        };
        FakeSysfs m = {};

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                const Pmu *pmu;

                fake_sysfs_change(&m, events[i].tree);
                pmu = pmu_table_find_event(&m.pmus, events[i].type, events[i].config);
                g_test_message("%s: %u, %#" G_GINT64_MODIFIER "x", events[i].tree, events[i].type,
                               events[i].config);
                g_assert_cmpstr(pmu ? pmu->name : NULL, ==, events[i].pmu);
        }
        fake_sysfs_done(&m);
}

static void test_cpu_lists_are_those_of_sysfs(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        assert_cpus(&m.pmus.possible, "0-511");
        assert_cpus(&m.pmus.present, "0-255");
        assert_cpus(&m.pmus.online, "0-199,201-255");
        fake_sysfs_done(&m);
}

static void test_refresh_sees_cpus_come_and_go(void) {
        _cleanup_(cpu_generations_done) CpuGenerations generations = CPU_GENERATIONS_NULL;
        _cleanup_(cpuset_done) CpuSet before = CPUSET_NULL;
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        fixture_write(m.tree, "../../../devices/system/cpu/online", "0-3,7");
        g_assert_cmpint(pmu_table_refresh_online(&m.pmus, &before, &generations), ==, 0);
        assert_cpus(&before, "0-199,201-255");
        g_assert_cmpuint(generations.n, ==, 256);
        assert_cpus(&m.pmus.online, "0-3,7");
        assert_cpus(&m.pmus.present, "0-255");
        fake_sysfs_done(&m);
}

static void test_masks_are_read_anew(void) {
        char *tree = fixture_tree("server-256");
        _cleanup_(pmu_table_done) PmuTable t = {};
        const Pmu *imc, *core;
        bool has;

        g_assert_cmpint(pmu_table_load(&t, tree), ==, 0);
        imc = pmu_table_find(&t, "uncore_imc_0");
        core = pmu_table_find(&t, "cpu");
        has = cpuset_has(&core->cpus, 0);
        fixture_write(tree, "uncore_imc_0/cpumask", "3");
        g_assert_cmpint(pmu_table_refresh_masks(&t), ==, 0);
        g_assert_cmpuint(cpuset_count(&imc->cpus), ==, 1);
        g_assert_true(cpuset_has(&imc->cpus, 3));
        g_assert_cmpint(cpuset_has(&core->cpus, 0), ==, has);
        fixture_write(tree, "uncore_imc_0/cpumask", "none");
        g_assert_cmpint(pmu_table_refresh_masks(&t), ==, 0);
        g_assert_true(cpuset_has(&imc->cpus, 3));
        fixture_done(tree);
}

/* The kernel knows of a CPU that has never run only then whose it is. */
static void test_a_core_pmu_gets_cpus(void) {
        char *tree = fixture_tree("intel-hybrid");
        _cleanup_(pmu_table_done) PmuTable t = {};
        const Pmu *core;

        fixture_write(tree, "cpu_core/cpus", "0-1");
        g_assert_cmpint(pmu_table_load(&t, tree), ==, 0);
        core = pmu_table_find(&t, "cpu_core");
        assert_cpus(&core->cpus, "0-1");
        fixture_write(tree, "cpu_core/cpus", "0,2");
        g_assert_cmpint(pmu_table_refresh_masks(&t), ==, 0);
        assert_cpus(&core->cpus, "0-2"); /* one that is off comes back */
        fixture_done(tree);
}

static void test_without_cpu_lists_there_is_the_first_cpu(void) {
        FakeSysfs m = fake_sysfs_of(fixture_empty());

        g_assert_cmpuint(m.pmus.n_pmus, ==, 0);
        g_assert_null(pmu_table_find(&m.pmus, "cpu"));
        g_assert_null(pmu_table_find_event(&m.pmus, PERF_TYPE_HARDWARE, 0));
        assert_cpus(&m.pmus.possible, "0");
        assert_cpus(&m.pmus.online, "0");
        fake_sysfs_done(&m);
}

static void test_no_event_source_is_enoent(void) {
        char *tree = fixture_empty();
        g_autofree char *elsewhere = g_build_filename(tree, "bus", NULL);
        PmuTable pmus = { .n_pmus = 77 };

        g_assert_cmpint(pmu_table_load(&pmus, elsewhere), ==, -ENOENT);
        g_assert_cmpuint(pmus.n_pmus, ==, 77);
        fixture_done(tree);
}

/* PMUs that cannot be read, and one that can. */
static char *odd_tree(void) {
        char *tree = fixture_empty();
        g_autofree char *devices = g_build_filename(tree, "bus/event_source/devices", NULL);
        g_autofree char *huge = g_strnfill(1 << 20, '7');
        g_autofree char *gone = g_build_filename(devices, "gone", NULL);
        g_autofree char *untyped = g_build_filename(devices, "untyped", NULL);
        g_autofree char *pipe = g_build_filename(devices, "pipe/type", NULL);

        fixture_write(tree, "words/type", "none");
        fixture_write(tree, "empty/type", "");
        fixture_write(tree, "negative/type", "-1");
        fixture_write(tree, "large/type", "4294967296");
        fixture_write(tree, "huge/type", huge);
        fixture_write(tree, "masked/type", "40");
        fixture_write(tree, "masked/cpumask", "zero");
        fixture_write(tree, "far/type", "41");
        fixture_write(tree, "far/cpumask", "0-99999999");
        fixture_write(tree, "file", "42");
        fixture_write(tree, "a blank/type", "43");
        fixture_write(tree, "line\nend/type", "44");
        fixture_write(tree, ".hidden/type", "45");
        fixture_write(tree, "pipe/other", "");
        g_assert_no_errno(mkfifo(pipe, 0600));
        g_assert_no_errno(mkdir(untyped, 0755));
        g_assert_no_errno(symlink("nowhere", gone));
        fixture_write(tree, "sane/type", "4294967295");
        return tree;
}

static void test_odd_units_are_left_out(void) {
        unsigned before = count_descriptors();
        FakeSysfs m = fake_sysfs_of(odd_tree());

        g_assert_cmpuint(m.pmus.n_pmus, ==, 1);
        g_assert_cmpstr(m.pmus.pmus[0].name, ==, "sane");
        g_assert_cmpuint(m.pmus.pmus[0].type, ==, UINT32_MAX);
        fake_sysfs_done(&m);
        g_assert_cmpuint(count_descriptors(), ==, before);
}

static void test_this_machine_is_read_as_the_kernel_shows_it(void) {
        g_autoptr(GDir) devices = g_dir_open("/sys/bus/event_source/devices", 0, NULL);
        PmuTable pmus;
        size_t n = 0;

        if (machine_lacks(MACHINE_SYSFS))
                return;
        g_assert_cmpint(pmu_table_load(&pmus, "/sys"), ==, 0);
        for (const char *name; (name = g_dir_read_name(devices)); n++) {
                g_autofree char *path =
                        g_build_filename("/sys/bus/event_source/devices", name, "type", NULL);
                g_autofree char *text = NULL;
                const Pmu *pmu = pmu_table_find(&pmus, name);

                g_assert_nonnull(pmu);
                g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
                g_assert_cmpuint(pmu->type, ==, g_ascii_strtoull(text, NULL, 10));
        }
        g_assert_cmpuint(pmus.n_pmus, ==, n);
        g_assert_cmpint(pmu_table_find(&pmus, "software")->kind, ==, PMU_SOFTWARE);
        g_assert_cmpuint(cpuset_count(&pmus.online), ==, (unsigned) sysconf(_SC_NPROCESSORS_ONLN));
        pmu_table_done(&pmus);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/pmu/kinds-follow-from-what-sysfs-shows",
                        test_kinds_follow_from_what_sysfs_shows);
        g_test_add_func("/pmu/only-what-reserves-at-open-closes-to-yield",
                        test_only_what_reserves_at_open_closes_to_yield);
        g_test_add_func("/pmu/table-is-sorted-and-every-unit-is-found-at-its-index",
                        test_table_is_sorted_and_every_unit_is_found_at_its_index);
        g_test_add_func("/pmu/generic-events-go-to-a-core-unit",
                        test_generic_events_go_to_a_core_unit);
        g_test_add_func("/pmu/cpu-lists-are-those-of-sysfs", test_cpu_lists_are_those_of_sysfs);
        g_test_add_func("/pmu/refresh-sees-cpus-come-and-go", test_refresh_sees_cpus_come_and_go);
        g_test_add_func("/pmu/masks-are-read-anew", test_masks_are_read_anew);
        g_test_add_func("/pmu/a-core-pmu-gets-cpus-that-come", test_a_core_pmu_gets_cpus);
        g_test_add_func("/pmu/without-cpu-lists-there-is-the-first-cpu",
                        test_without_cpu_lists_there_is_the_first_cpu);
        g_test_add_func("/pmu/no-event-source-is-enoent", test_no_event_source_is_enoent);
        g_test_add_func("/pmu/odd-units-are-left-out", test_odd_units_are_left_out);
        g_test_add_func("/machine/pmu/is-read-as-the-kernel-shows-it",
                        test_this_machine_is_read_as_the_kernel_shows_it);
        return g_test_run();
}
