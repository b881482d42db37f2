/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/kernel-share.h"

#include "perf/pmu/probe.h"
#include "perf/pmu/test-model.h"

#include <glib/gstdio.h>

/* kernel.nmi_watchdog in a file of its own; NULL: this kernel has none. */
static char *sysctl_new(const char *text) {
        char *path = g_build_filename(g_get_tmp_dir(), "perfalloc-watchdog-XXXXXX", NULL);
        int fd = g_mkstemp(path);

        g_assert_cmpint(fd, >=, 0);
        close_fd(fd);
        if (text)
                g_assert_true(g_file_set_contents(path, text, -1, NULL));
        else
                g_assert_no_errno(g_unlink(path));
        return path;
}

/* ---- what it tells ---- */

static void assert_share(const Pmu *pmu, const char *text, unsigned general, uint32_t fixed) {
        g_autofree char *path = sysctl_new(text);
        Shape share = kernel_share(pmu, path);

        g_assert_cmpuint(share.general, ==, general);
        g_assert_cmpuint(share.fixed, ==, fixed);
        (void) g_unlink(path);
}

static const Pmu intel = {
        .kind = PMU_CORE,
        .measured = true,
        .counters = 4,
        .n_fixed = 2,
        .fixed = { { .name = "instructions" }, { .name = "cycles" } },
};
static const Pmu amd = { .kind = PMU_CORE, .measured = true, .counters = 6 };
static const Pmu riscv = { .kind = PMU_CORE };
static const Pmu software = { .kind = PMU_SOFTWARE, .measured = true };
static const Pmu breakpoints = { .kind = PMU_BREAKPOINT, .measured = true, .counters = 4 };

static void test_watchdog(void) {
        assert_share(&intel, "1\n", 0, 2);
        assert_share(&amd, "1\n", 1, 0);
        assert_share(&riscv, "1\n", 0, 0);
        assert_share(&software, "1\n", 0, 0);
        assert_share(&breakpoints, "1\n", 0, 0);
}

static void test_none(void) {
        assert_share(&intel, "0\n", 0, 0);
        assert_share(&amd, "0\n", 0, 0);
        assert_share(&amd, "", 0, 0);
        assert_share(&amd, NULL, 0, 0);
}

/* ---- what is found taken ---- */

static void test_watchdog_takes_it(void) {
        static const char *const machines[] = { "intel", "zen", "hybrid", "arm", "intel-1-fixed" };
        g_autofree char *sysctl = sysctl_new("1\n");

        for (size_t i = 0; i < G_N_ELEMENTS(machines); i++) {
                Host h = {};

                host_boot(&h, machines[i]);
                model_watchdog(true);
                for (unsigned k = 0; k < host_n_pmus(&h); k++) {
                        const Pmu *pmu = host_pmu(&h, k);
                        Shape share = kernel_share(pmu, sysctl), found;
                        unsigned cpu = h.machine->pmus[k].first;

                        g_assert_false(shape_is_empty(share));
                        g_assert_cmpint(probe_free_now(pmu, cpu, pmu_whole(pmu), &found), ==, 0);
                        found = shape_without(pmu_whole(pmu), found);
                        g_assert_cmpuint(found.general, ==, share.general);
                        g_assert_cmpuint(found.fixed, ==, share.fixed);
                }
                host_halt(&h);
        }
        g_assert_no_errno(g_unlink(sysctl));
}

/* The detector runs, and has an event or none: then what is free is nobody's. Calls take so much
 * longer. */
static void assert_detector_is_told(const char *sysctl, bool counts, uint64_t usec) {
        g_autofree char *cpus = sysctl_new("0-63\n");
        Storm all = { usec, UINT_MAX };
        Host h = {};
        Pmu *pmu;

        host_boot(&h, "zen");
        pmu = host_pmu(&h, 0);
        model_watchdog(counts);
        model_each_call(storm, &all);
        kernel_share_look(pmu, sysctl, cpus);
        model_each_call(NULL, NULL);
        g_assert_true(shape_is_empty(kernel_share(pmu, sysctl)) == !counts);
        g_assert_cmpuint(model_n_open(), ==, counts ? h.machine->n_cpus : 0);
        host_halt(&h);
        g_assert_no_errno(g_unlink(cpus));
}

static void test_detector_that_counts_nothing(void) {
        g_autofree char *sysctl = sysctl_new("1\n");

        for (unsigned counts = 0; counts < 2; counts++) {
                assert_detector_is_told(sysctl, counts, 0);
                assert_detector_is_told(sysctl, counts, 3000);
        }
        g_assert_no_errno(g_unlink(sysctl));
}

/* It counts, and CPU 0 alone is free, which it does not watch. */
static void test_detector_that_does_not_watch_all(void) {
        g_autofree char *sysctl = sysctl_new("1\n"), *cpus = sysctl_new("1-63\n");
        int events[MODEL_CPUS_MAX];
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++)
                events[cpu] = model_open(&(ModelEvent){ "cycles", .cpu = cpu, .pinned = true });
        kernel_share_look(host_pmu(&h, 0), sysctl, cpus);
        g_assert_false(shape_is_empty(kernel_share(host_pmu(&h, 0), sysctl)));
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++)
                model_close(events[cpu]);
        host_halt(&h);
        g_assert_no_errno(g_unlink(sysctl));
        g_assert_no_errno(g_unlink(cpus));
}

/* Where somebody counts on every CPU it cannot be told, and the counter is kept. */
static void test_detector_beside_strangers(void) {
        g_autofree char *sysctl = sysctl_new("1\n"), *cpus = sysctl_new("0-63\n");
        int strangers[MODEL_CPUS_MAX];
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++)
                strangers[cpu] = model_open(&(ModelEvent){ "cycles", .cpu = cpu });
        kernel_share_look(host_pmu(&h, 0), sysctl, cpus);
        g_assert_false(shape_is_empty(kernel_share(host_pmu(&h, 0), sysctl)));
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++)
                model_close(strangers[cpu]);
        host_halt(&h);
        g_assert_no_errno(g_unlink(sysctl));
        g_assert_no_errno(g_unlink(cpus));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/kernel-share/watchdog-counts-cycles", test_watchdog);
        g_test_add_func("/kernel-share/no-watchdog-no-share", test_none);
        g_test_add_func("/kernel-share/is-found-taken", test_watchdog_takes_it);
        g_test_add_func("/kernel-share/a-detector-that-counts-nothing-keeps-nothing",
                        test_detector_that_counts_nothing);
        g_test_add_func("/kernel-share/cpus-that-are-not-watched-tell-nothing",
                        test_detector_that_does_not_watch_all);
        g_test_add_func("/kernel-share/a-detector-beside-strangers-keeps-its-counter",
                        test_detector_beside_strangers);
        return g_test_run();
}
