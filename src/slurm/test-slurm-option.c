/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slurm/slurm-option.h"

#include <glib.h>
#include <string.h>

#include "slurm/step-cgroup.h"

static void test_without_a_value_all_counters_are_held(void) {
        _cleanup_(slurm_option_done) SlurmOption o = SLURM_OPTION_NULL;

        g_assert_cmpint(slurm_option_parse(NULL, &o, NULL), ==, 0);
        g_assert_true(o.given);
        g_assert_false(o.exclusive);
        g_assert_false(o.best_effort);
        g_assert_cmpuint(o.counters, ==, 0);
        g_assert_cmpuint(o.wait_usec, ==, 0);
        g_assert_null(o.pmus[0]);
}

static void test_every_word_is_read(void) {
        _cleanup_(slurm_option_done) SlurmOption o = SLURM_OPTION_NULL;

        g_assert_cmpint(
                slurm_option_parse("counters=2,pmus=cpu_core+cpu_atom,wait=2min,best-effort", &o,
                                   NULL),
                ==, 0);
        g_assert_cmpuint(o.counters, ==, 2);
        g_assert_cmpstr(o.pmus[0], ==, "cpu_core");
        g_assert_cmpstr(o.pmus[1], ==, "cpu_atom");
        g_assert_null(o.pmus[2]);
        g_assert_cmpuint(o.wait_usec, ==, 120 * USEC_PER_SEC);
        g_assert_true(o.best_effort);
        slurm_option_done(&o);
        g_assert_cmpint(slurm_option_parse("counters=0", &o, NULL), ==, 0); /* all */
        g_assert_cmpuint(o.counters, ==, 0);
        slurm_option_done(&o);
        g_assert_cmpint(slurm_option_parse("exclusive", &o, NULL), ==, 0);
        g_assert_true(o.exclusive);
}

static void test_what_is_wrong_is_named(void) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                { "exclusiv", "'exclusiv'" },
                { ",", "''" },
                { "exclusive,", "''" },
                { "exclusive=yes", "'exclusive'" },
                { "counters", "counters" },
                { "counters=", "counters" },
                { "counters=-1", "'-1'" },
                { "counters=4294967296", "'4294967296'" },
                { "counters=2,exclusive", "counters=2" },
                { "pmus=", "pmus" },
                { "pmus=cpu+", "pmus" },
                { "pmus=a+b+c+d+e+f+g+h+i", "1 to 8" },
                { "wait=soon", "'soon'" },
                { "wait", "wait" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                SlurmOption o = SLURM_OPTION_NULL;
                Refusal why = REFUSAL_NULL;

                g_assert_cmpint(slurm_option_parse(cases[i].text, &o, &why), ==,
                                REFUSAL_INVALID_ARGS);
                if (!strstr(why.text, cases[i].words))
                        g_error("'%s': '%s' does not say %s", cases[i].text, why.text,
                                cases[i].words);
                g_assert_false(o.given);
        }
}

static void assert_cgroup(const char *text, const char *path) {
        g_autofree char *found = step_cgroup_path(text);

        g_assert_cmpstr(found, ==, path);
}

static void test_cgroup_is_the_steps(void) {
        assert_cgroup("0::/system.slice/slurmstepd.scope/job_7/step_0/slurm\n",
                      "/system.slice/slurmstepd.scope/job_7/step_0");
        assert_cgroup("12:cpu:/x/job_1/step_1\n0::/a/job_7/step_batch/user/task_0\n",
                      "/a/job_7/step_batch");
        assert_cgroup("0::/job_7/step_0", "/job_7/step_0");
        assert_cgroup("0::/system.slice/slurmstepd.scope/sD45M828RBYW00/step_0/slurm\n",
                      "/system.slice/slurmstepd.scope/sD45M828RBYW00/step_0");
        assert_cgroup("0::/job_7/step_0/user/task_0/job_1/step_2/slurm\n",
                      "/job_7/step_0/user/task_0/job_1/step_2");
        assert_cgroup("0::/user.slice\n", NULL);
        assert_cgroup("0::/job_7/slurm\n1:cpu:/step_0\n", NULL);
        assert_cgroup("1:cpu:/job_7/step_0\n", NULL);
        assert_cgroup("", NULL);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/slurm-option/without-a-value-all-counters-are-held",
                        test_without_a_value_all_counters_are_held);
        g_test_add_func("/slurm-option/every-word-is-read", test_every_word_is_read);
        g_test_add_func("/slurm-option/what-is-wrong-is-named", test_what_is_wrong_is_named);
        g_test_add_func("/step-cgroup/is-the-steps", test_cgroup_is_the_steps);
        return g_test_run();
}
