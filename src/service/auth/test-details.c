/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/auth/details.h"

#include <string.h>
#include <sys/prctl.h>

#include <glib.h>

static void check_quoted(const char *text, const char *expected) {
        char buf[DETAILS_TEXT_SIZE];

        details_quote(buf, text);
        g_assert_cmpstr(buf, ==, expected);
}

static void test_words_stay_words(void) {
        check_quoted("", "\"\"");
        check_quoted("measuring the new kernel", "\"measuring the new kernel\"");
        check_quoted("größer, 漢字, 🎉", "\"größer, 漢字, 🎉\"");
}

static void test_nothing_breaks_out_of_the_quotes(void) {
        check_quoted("fine\". Enter your password: \"", "\"fine'. Enter your password: '\"");
        check_quoted("a\nb\tc\033[2J\x7f", "\"a?b?c?[2J?\"");
        check_quoted("\u202egnp\u2066x\u200b\u2028\xc2\x85", "\"?gnp?x???\"");
        check_quoted("\U000e0041\ufeff\ue000", "\"???\"");
}

static void test_broken_utf8_is_shown_as_such(void) {
        check_quoted("a\x80"
                     "b\xc3",
                     "\"a?b?\"");
        check_quoted("\xc0\xaf\xe0\x80\xaf\xf8\x88\xff", "\"????????\"");
        check_quoted("\xed\xa0\x80", "\"?\"");
}

static void test_at_most_128_characters(void) {
        g_autofree char *narrow = g_strnfill(1 << 20, 'x');
        g_autofree char *expected = g_strdup_printf("\"%.128s\"", narrow);
        g_autoptr(GString) wide = g_string_new(NULL);
        char buf[DETAILS_TEXT_SIZE];

        check_quoted(narrow, expected);
        for (int i = 0; i < 1000; i++)
                g_string_append(wide, "🎉");
        details_quote(buf, wide->str);
        g_assert_cmpint(g_utf8_strlen(buf, -1), ==, 130);
        g_assert_cmpuint(strlen(buf), ==, sizeof(buf) - 1);
}

static void test_program_is_quoted_too(void) {
        Details d, unknown;

        g_assert_cmpint(prctl(PR_SET_NAME, "ev\"il\033\xff 789012345"), ==, 0);
        details_fill(&d, 1000, getpid(), "why");
        g_assert_cmpstr(d.program, ==, "\"ev'il?? 7890123\"");
        g_assert_cmpstr(d.reason, ==, "\"why\"");

        details_fill(&unknown, 1000, 0, NULL);
        g_assert_cmpstr(unknown.program, ==, DETAILS_UNKNOWN);
        g_assert_cmpstr(unknown.reason, ==, DETAILS_UNKNOWN);
        g_assert_false(details_equal(&d, &unknown));
        g_assert_true(details_equal(&d, &d));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/details/words-stay-words", test_words_stay_words);
        g_test_add_func("/details/nothing-breaks-out-of-the-quotes",
                        test_nothing_breaks_out_of_the_quotes);
        g_test_add_func("/details/broken-utf8-is-shown-as-such", test_broken_utf8_is_shown_as_such);
        g_test_add_func("/details/at-most-128-characters", test_at_most_128_characters);
        g_test_add_func("/details/program-is-quoted-too", test_program_is_quoted_too);
        return g_test_run();
}
