/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/history.h"

#include <glib.h>
#include <math.h>
#include <string.h>

static char *line_of(const History *h, size_t width, bool utf8) {
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        history_print(h, width, utf8, f);
        g_assert_cmpint(fclose(f), ==, 0);
        return text;
}

static void assert_line(const History *h, size_t width, bool utf8, const char *expected) {
        char *text = line_of(h, width, utf8);

        g_assert_cmpstr(text, ==, expected);
        free(text);
}

static History history_of(const double *values, size_t n) {
        History h = HISTORY_NULL;

        for (size_t i = 0; i < n; i++)
                g_assert_cmpint(history_add(&h, (double) i, values[i], true), ==, 0);
        return h;
}

static void bars_are_as_high_as_the_highest_shown(void) {
        const double values[] = { 1000, 0, 35, 70 };
        History h = history_of(values, G_N_ELEMENTS(values));

        assert_line(&h, 3, true, "▁▅█");
        assert_line(&h, 3, false, "_=#");
        assert_line(&h, 80, true, "█▁▁▁");
        history_done(&h);
}

static void what_is_not_known_is_blank(void) {
        const double values[] = { NAN, 7, NAN }, zeros[] = { 0, 0 };
        History h = history_of(values, G_N_ELEMENTS(values));

        assert_line(&h, 80, true, " █ ");
        history_done(&h);
        h = history_of(zeros, G_N_ELEMENTS(zeros));
        assert_line(&h, 80, true, "▁▁");
        history_done(&h);
}

static void a_terminal_needs_no_memory_for_all_days(void) {
        History h = HISTORY_NULL;

        for (size_t i = 0; i < 100000; i++)
                g_assert_cmpint(history_add(&h, (double) i, (double) i, false), ==, 0);
        g_assert_cmpuint(h.room, <=, 2048);
        g_assert_cmpfloat(h.points[h.n - 1].value, ==, 99999);
        history_done(&h);
}

/* Well-formed, with a panel for each, also without any point. */
static void picture_has_a_panel_for_each(void) {
        const double values[] = { 1, NAN, 3 };
        History all[] = { history_of(values, G_N_ELEMENTS(values)), HISTORY_NULL };
        char *const labels[] = { (char *) "a<b&c", (char *) "nothing" };
        g_autoptr(GMarkupParseContext) parser = NULL;
        const GMarkupParser none = {};
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        g_assert_cmpint(history_plot(all, labels, 2, f), ==, 0);
        g_assert_cmpint(fclose(f), ==, 0);
        parser = g_markup_parse_context_new(&none, 0, NULL, NULL);
        g_assert_true(g_markup_parse_context_parse(parser, text, -1, NULL));
        g_assert_true(g_markup_parse_context_end_parse(parser, NULL));
        g_assert_nonnull(strstr(text, "a&lt;b&amp;c"));
        g_assert_nonnull(strstr(text, "nothing"));
        g_assert_null(strstr(text, "nan"));
        g_assert_null(strstr(text, "inf"));
        free(text);
        history_done(&all[0]);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/history/bars-are-as-high-as-the-highest-shown",
                        bars_are_as_high_as_the_highest_shown);
        g_test_add_func("/history/what-is-not-known-is-blank", what_is_not_known_is_blank);
        g_test_add_func("/history/a-terminal-needs-no-memory-for-all-days",
                        a_terminal_needs_no_memory_for_all_days);
        g_test_add_func("/history/picture-has-a-panel-for-each", picture_has_a_panel_for_each);
        return g_test_run();
}
