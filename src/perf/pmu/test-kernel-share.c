/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/kernel-share.h"

#include <glib.h>
#include <glib/gstdio.h>

static void assert_share(const Pmu *pmu, const char *text, unsigned general, uint32_t fixed) {
        g_autofree char *path = g_build_filename(g_get_tmp_dir(), "perfalloc-XXXXXX", NULL);
        int fd = g_mkstemp(path);
        Shape share;

        g_assert_cmpint(fd, >=, 0);
        close_fd(fd);
        if (text)
                g_assert_true(g_file_set_contents(path, text, -1, NULL));
        else
                g_assert_no_errno(g_unlink(path));
        share = kernel_share(pmu, path);
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

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/kernel-share/watchdog-counts-cycles", test_watchdog);
        g_test_add_func("/kernel-share/no-watchdog-no-share", test_none);
        return g_test_run();
}
