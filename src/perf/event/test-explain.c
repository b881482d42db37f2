/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/explain.h"

#include <glib.h>
#include <string.h>

#include "machine.h"

static Pmu pmu = { .name = (char *) "cpu_core" };
static const Event event = { .name = (char *) "cycles:u", .pmu = &pmu };

/* The refusal for each errno of perf_event_open(2), and a word of its advice. */
static const struct {
        int error, code;
        const char *remedy;
} cases[] = {
        { E2BIG, REFUSAL_ATTR_SIZE, "AttrSize" },
        { EACCES, REFUSAL_PRIVILEGE_NEEDED, "CAP_SYS_ADMIN" },
        { EBADF, REFUSAL_BAD_DESCRIPTOR, "must be an open perf event" },
        { EBUSY, REFUSAL_BUSY, "perfallocctl users" },
        { EFAULT, REFUSAL_BAD_ADDRESS, "use a mapped one" },
        { EINTR, REFUSAL_MIXED_TRACING, "switch it off in tracefs" },
        { EINVAL, REFUSAL_INVALID_EVENT, "must fit on the PMU" },
        { EPERM, REFUSAL_NOT_PERMITTED, "seccomp" },
        { EMFILE, REFUSAL_TOO_MANY_DESCRIPTORS, "LimitNOFILE=" },
        { ENFILE, REFUSAL_TOO_MANY_DESCRIPTORS, "LimitNOFILE=" },
        { ENODEV, REFUSAL_NOT_ON_THIS_CPU, "perfallocctl pmus" },
        { ENOENT, REFUSAL_NO_SUCH_EVENT, "perfallocctl events" },
        { ENOSPC, REFUSAL_NO_COUNTER_LEFT, "perfallocctl users" },
        { ENOSYS, REFUSAL_NOT_IMPLEMENTED, "the container's filter" },
        { EOPNOTSUPP, REFUSAL_NOT_SUPPORTED, "another PMU" },
        { EOVERFLOW, REFUSAL_STACK_TOO_DEEP, "sample_max_stack" },
        { ESRCH, REFUSAL_NO_SUCH_PROCESS, "4242" },
};

static void test_each_error_is_one_refusal_that_names_the_event(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Refusal why = REFUSAL_NULL;

                g_assert_cmpint(explain_open(cases[i].error, &event, 4242, 3, &why), ==,
                                cases[i].code);
                g_test_message("%s: %s", strerror(cases[i].error), why.text);
                g_assert_cmpint(why.code, ==, cases[i].code);
                g_assert_nonnull(strstr(why.text, "cycles:u"));
                g_assert_cmpint(explain_open(cases[i].error, &event, 4242, 3, NULL), ==,
                                cases[i].code);
        }
}

static void test_what_can_be_helped_says_how(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Refusal why = REFUSAL_NULL;

                (void) explain_open(cases[i].error, &event, 4242, 3, &why);
                if (!strstr(why.text, cases[i].remedy))
                        g_error("'%s' does not say '%s'", why.text, cases[i].remedy);
        }
}

static void test_place_is_a_cpu_a_thread_or_both(void) {
        static const struct {
                pid_t tid;
                int cpu;
                const char *words, *absent;
        } places[] = {
                { -1, 7, "on CPU 7", "thread" },
                { 4242, -1, "thread 4242", "CPU" },
                { 4242, 7, "thread 4242 on CPU 7", NULL },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
                Refusal why = REFUSAL_NULL;

                (void) explain_open(ENOSPC, &event, places[i].tid, places[i].cpu, &why);
                g_assert_nonnull(strstr(why.text, places[i].words));
                if (places[i].absent)
                        g_assert_null(strstr(why.text, places[i].absent));
        }
}

/* What is wrong on this machine, as far as it can be found out. */
static void test_causes_are_looked_for(void) {
        static Pmu uncore = { .name = (char *) "uncore_imc_0", .kind = PMU_UNCORE };
        static const struct {
                int error;
                Event event;
                const char *words;
        } causes[] = {
                { EINVAL,
                  { .attr = { .freq = 1, .sample_freq = UINT64_MAX } },
                  "perf_event_max_sample_rate" },
                { EINVAL, { .attr = { .enable_on_exec = 1, .remove_on_exec = 1 } }, "contradict" },
                { EINVAL, { .attr = { .inherit_thread = 1 } }, "needs inherit" },
                { EINVAL, { .attr = { .type = PERF_TYPE_BREAKPOINT } }, "multiple" },
                { EINVAL, { .pmu = &uncore }, "cannot count a process" },
                { EINVAL, { .attr = { .exclude_kernel = 1 } }, "without :u" },
                { ENOENT, { .attr = { .type = PERF_TYPE_HARDWARE } }, "no core PMU" },
                { ENOENT, { .attr = { .type = 4711 } }, "no PMU of type 4711" },
                { EOPNOTSUPP,
                  { .attr = { .sample_type = PERF_SAMPLE_BRANCH_STACK } },
                  "branch records" },
                { EOPNOTSUPP, { .attr = { .precise_ip = 2 } }, "precise samples" },
                { EOPNOTSUPP, { .attr = { .sample_period = 1 } }, "not support sampling" },
                { EOVERFLOW, { .attr = { .sample_max_stack = 1234 } }, "1234 frames" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(causes); i++) {
                Event e = causes[i].event;
                Refusal why = REFUSAL_NULL;

                e.name = (char *) "cycles:u";
                (void) explain_open(causes[i].error, &e, 4242, -1, &why);
                if (!strstr(why.text, causes[i].words))
                        g_error("'%s' does not say '%s'", why.text, causes[i].words);
        }
}

static void test_privilege_names_the_setting_of_this_machine(void) {
        g_autofree char *text = NULL, *words = NULL;
        Refusal why = REFUSAL_NULL;

        if (!g_file_get_contents("/proc/sys/kernel/perf_event_paranoid", &text, NULL, NULL)) {
                g_test_skip("this kernel has no perf events");
                return;
        }
        words = g_strdup_printf("perf_event_paranoid is %s", g_strchomp(text));
        (void) explain_open(EACCES, &event, 1, -1, &why);
        g_assert_nonnull(strstr(why.text, words));
}

static void test_lack_of_memory_is_no_refusal(void) {
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(explain_open(ENOMEM, &event, 1, -1, &why), ==, -ENOMEM);
        g_assert_cmpint(why.code, ==, 0);
}

static void test_error_that_nobody_foresaw_has_the_systems_words(void) {
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(explain_open(EXDEV, &event, 1, -1, &why), >, 0);
        g_assert_cmpint(why.code, >, 0);
        g_assert_nonnull(strstr(why.text, strerror(EXDEV)));
}

static void test_long_names_and_no_pmu_are_survived(void) {
        g_autofree char *name = g_strnfill(4 * REFUSAL_TEXT_MAX, 'x');
        const Event odd = { .name = name };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Refusal why = REFUSAL_NULL;

                g_assert_cmpint(explain_open(cases[i].error, &odd, 1, -1, &why), ==, cases[i].code);
                g_assert_cmpuint(strlen(why.text), <, sizeof(why.text));
        }
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/explain/each-error-is-one-refusal-that-names-the-event",
                        test_each_error_is_one_refusal_that_names_the_event);
        g_test_add_func("/explain/what-can-be-helped-says-how", test_what_can_be_helped_says_how);
        g_test_add_func("/explain/place-is-a-cpu-a-thread-or-both",
                        test_place_is_a_cpu_a_thread_or_both);
        g_test_add_func("/explain/causes-are-looked-for", test_causes_are_looked_for);
        g_test_add_func("/machine/explain/privilege-names-the-setting",
                        test_privilege_names_the_setting_of_this_machine);
        g_test_add_func("/explain/lack-of-memory-is-no-refusal", test_lack_of_memory_is_no_refusal);
        g_test_add_func("/explain/error-that-nobody-foresaw-has-the-systems-words",
                        test_error_that_nobody_foresaw_has_the_systems_words);
        g_test_add_func("/explain/long-names-and-no-pmu-are-survived",
                        test_long_names_and_no_pmu_are_survived);
        return g_test_run();
}
