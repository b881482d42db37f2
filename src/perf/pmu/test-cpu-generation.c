/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/cpu-generation.h"

#include <glib.h>
#include <glib/gstdio.h>

/* A tree like sysfs, with CPUs that come and go. */
static char *tree;

static char *topology_path(unsigned cpu) {
        return g_strdup_printf("%s/devices/system/cpu/cpu%u/topology", tree, cpu);
}

static void cpu_comes(unsigned cpu) {
        g_autofree char *path = topology_path(cpu);

        g_assert_cmpint(g_mkdir_with_parents(path, 0700), ==, 0);
}

/* Keeps the old directory elsewhere: other file systems reuse inode numbers. */
static void cpu_goes(unsigned cpu) {
        static unsigned n;
        g_autofree char *path = topology_path(cpu), *past = g_strdup_printf("%s/past-%u", tree, n);

        n++;
        g_assert_cmpint(g_rename(path, past), ==, 0);
}

static CpuGenerations cpu_generations_now(const char *list) {
        CpuSet cpus = CPUSET_NULL;
        CpuGenerations l = CPU_GENERATIONS_NULL;

        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        g_assert_cmpint(cpu_generations_read(tree, &cpus, &l), ==, 0);
        cpuset_done(&cpus);
        return l;
}

static void test_cpu_that_stays_is_the_same(void) {
        CpuGenerations before, now;

        cpu_comes(0);
        cpu_comes(1);
        before = cpu_generations_now("0-1");
        now = cpu_generations_now("0-1");
        g_assert_false(cpu_generations_differ(&before, &now, 0));
        g_assert_false(cpu_generations_differ(&before, &now, 1));
        cpu_generations_done(&before);
        cpu_generations_done(&now);
}

static void test_cpu_that_was_away_is_another(void) {
        CpuGenerations before, now;

        cpu_comes(0);
        cpu_comes(1);
        before = cpu_generations_now("0-1");
        cpu_goes(1);
        cpu_comes(1);
        now = cpu_generations_now("0-1");
        g_assert_false(cpu_generations_differ(&before, &now, 0));
        g_assert_true(cpu_generations_differ(&before, &now, 1));
        cpu_generations_done(&before);
        cpu_generations_done(&now);
}

/* A CPU that was unknown before, or is offline now, is in no known other generation. */
static void test_nothing_is_said_of_what_is_not_known(void) {
        CpuGenerations before, now, nothing = CPU_GENERATIONS_NULL;

        cpu_comes(0);
        cpu_comes(1);
        before = cpu_generations_now("0");
        now = cpu_generations_now("0-3");
        for (unsigned cpu = 0; cpu < 5; cpu++) {
                g_assert_false(cpu_generations_differ(&before, &now, cpu));
                g_assert_false(cpu_generations_differ(&nothing, &now, cpu));
                g_assert_false(cpu_generations_differ(&now, &nothing, cpu));
        }
        cpu_generations_done(&before);
        cpu_generations_done(&now);
}

static void test_numbers_can_be_written_down(void) {
        CpuGenerations before, loaded = CPU_GENERATIONS_NULL, now;

        cpu_comes(0);
        cpu_comes(1);
        before = cpu_generations_now("0-1");
        g_assert_cmpint(cpu_generations_load(before.ids, before.n, &loaded), ==, 0);
        cpu_generations_done(&before);
        cpu_goes(0);
        cpu_comes(0);
        now = cpu_generations_now("0-1");
        g_assert_true(cpu_generations_differ(&loaded, &now, 0));
        g_assert_false(cpu_generations_differ(&loaded, &now, 1));
        cpu_generations_done(&loaded);
        cpu_generations_done(&now);
}

/* The kernel's own. */
static void test_this_machine_has_them(void) {
        _cleanup_(cpuset_done) CpuSet first = CPUSET_NULL;
        _cleanup_(cpu_generations_done) CpuGenerations l = CPU_GENERATIONS_NULL;

        if (!g_file_test("/sys/devices/system/cpu/cpu0/topology", G_FILE_TEST_IS_DIR))
                return g_test_skip("this kernel tells no topology");
        g_assert_cmpint(cpuset_add(&first, 0), ==, 0);
        g_assert_cmpint(cpu_generations_read("/sys", &first, &l), ==, 0);
        g_assert_cmpuint(l.n, ==, 1);
        g_assert_cmpuint(l.ids[0], !=, 0);
}

static void tree_remove(const char *path) {
        g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);
        const char *name;

        while (directory && (name = g_dir_read_name(directory))) {
                g_autofree char *inner = g_build_filename(path, name, NULL);

                tree_remove(inner);
        }
        (void) g_rmdir(path);
}

int main(int argc, char *argv[]) {
        int r;

        g_test_init(&argc, &argv, NULL);
        tree = g_dir_make_tmp("test-generation-XXXXXX", NULL);
        g_assert_nonnull(tree);
        g_test_add_func("/cpu-generation/cpu-that-stays-is-the-same",
                        test_cpu_that_stays_is_the_same);
        g_test_add_func("/cpu-generation/cpu-that-was-away-is-another",
                        test_cpu_that_was_away_is_another);
        g_test_add_func("/cpu-generation/nothing-is-said-of-what-is-not-known",
                        test_nothing_is_said_of_what_is_not_known);
        g_test_add_func("/cpu-generation/numbers-can-be-written-down",
                        test_numbers_can_be_written_down);
        g_test_add_func("/machine/cpu-generation/this-machine-has-them",
                        test_this_machine_has_them);
        r = g_test_run();
        tree_remove(tree);
        g_free(tree);
        return r;
}
