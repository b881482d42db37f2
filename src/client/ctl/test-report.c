/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/report.h"

#include <glib.h>

static char *const events[] = {
        (char *) "task-clock", (char *) "cycles:u",      (char *) "instructions:u",
        (char *) "branches:k", (char *) "branch-misses", NULL,
};

/* Half a second of one CPU, of a second. */
static Report report_of_a_run(void) {
        static const ReportRun run[] = {
                { .value = 5e8, .quality = REPORT_EXACT },
                { .value = 1e9, .quality = REPORT_EXACT },
                { .value = 2.5e9,
                  .enabled_nsec = 1000,
                  .running_nsec = 250,
                  .quality = REPORT_SCALED },
                { .value = 1000, .quality = REPORT_EXACT },
                { .quality = REPORT_NOT_COUNTED },
        };
        Report r;

        g_assert_cmpint(report_init(&r, "make", events), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(run); i++)
                report_add(&r, i, &run[i]);
        report_add_times(&r, 1, 0.4, 0.1);
        return r;
}

static void assert_note(const Report *r, size_t row, const char *expected) {
        char note[REPORT_NOTE_MAX];

        report_note(r, &r->rows[row], note);
        g_assert_cmpstr(note, ==, expected);
}

static void events_are_set_beside_each_other(void) {
        Report r = report_of_a_run();

        assert_note(&r, 0, "0.500 CPUs used");
        assert_note(&r, 1, "2.00 GHz");
        assert_note(&r, 2, "2.50 insn per cycle");
        /* not the kernel's branches beside those of everything */
        assert_note(&r, 3, "2.00k/s");
        assert_note(&r, 4, "");
        report_done(&r);
}

static char *printed(const Report *r, int (*print)(const Report *r, FILE *f)) {
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        g_assert_cmpint(print(r, f), ==, 0);
        g_assert_cmpint(fclose(f), ==, 0);
        return text;
}

static void people_read_lines(void) {
        Report r = report_of_a_run();
        char *text = printed(&r, report_print);

        g_assert_cmpstr(text, ==,
                        "\nCounted for 'make':\n\n"
                        "         500.00 ms  task-clock             # 0.500 CPUs used\n"
                        "     1,000,000,000  cycles:u               # 2.00 GHz\n"
                        "     2,500,000,000  instructions:u         # 2.50 insn per cycle  "
                        "  (counted 25% of the time)\n"
                        "             1,000  branches:k             # 2.00k/s\n"
                        "     <not counted>  branch-misses\n\n"
                        "          1.000000  seconds elapsed\n"
                        "          0.400000  seconds user\n"
                        "          0.100000  seconds system\n\n");
        free(text);
        report_done(&r);
}

static void programs_read_fields(void) {
        Report r = report_of_a_run();
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        report_print_fields(&r, ",", f);
        g_assert_cmpint(fclose(f), ==, 0);
        g_assert_nonnull(strstr(text, "2500000000,instructions:u,scaled,0.00\n"));
        g_assert_nonnull(strstr(text, "\n,branch-misses,not-counted,0.00\n"));
        g_assert_nonnull(strstr(text, "\n0.400000,user,exact,0.00\n"));
        free(text);
        text = printed(&r, report_print_json);
        g_assert_nonnull(strstr(text, "\"event\": \"branch-misses\", \"value\": null"));
        g_assert_nonnull(strstr(text, "\"runs\": 1"));
        free(text);
        report_done(&r);
}

/* The standard deviation of 1, 2, 3 is 1; that of their mean 1/sqrt(3) of 2: 28.87 %. */
static void runs_have_a_mean_and_a_spread(void) {
        SampleSum s = {};

        sample_sum_add(&s, 1);
        g_assert_cmpfloat(sample_sum_spread(&s), ==, 0);
        sample_sum_add(&s, 2);
        sample_sum_add(&s, 3);
        g_assert_cmpfloat(s.mean, ==, 2);
        g_assert_cmpfloat_with_epsilon(sample_sum_spread(&s), 28.8675, 0.001);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/report/events-are-set-beside-each-other",
                        events_are_set_beside_each_other);
        g_test_add_func("/report/people-read-lines", people_read_lines);
        g_test_add_func("/report/programs-read-fields", programs_read_fields);
        g_test_add_func("/report/runs-have-a-mean-and-a-spread", runs_have_a_mean_and_a_spread);
        return g_test_run();
}
