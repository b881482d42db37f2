/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/auth/details.h"

#include <string.h>
#include <sys/prctl.h>

#include <glib.h>

#include "machine.h"

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
        details_fill(&d, 1000, getpid(), &(Asked){ .reason = "why" });
        g_assert_cmpstr(d.program, ==, "\"ev'il?? 7890123\"");
        g_assert_cmpstr(d.reason, ==, "\"why\"");

        details_fill(&unknown, 1000, 0, NULL);
        g_assert_cmpstr(unknown.program, ==, DETAILS_UNKNOWN);
        g_assert_cmpstr(unknown.reason, ==, DETAILS_UNKNOWN);
        g_assert_false(details_equal(&d, &unknown));
        g_assert_true(details_equal(&d, &d));
}

static void test_lists_have_each_word_once(void) {
        Asked a = ASKED_NULL;

        asked_add(a.events, "cycles");
        asked_add(a.events, "cycle");
        asked_add(a.events, "cycles");
        asked_add(a.events, "cycle");
        g_assert_cmpstr(a.events, ==, "cycles cycle");
}

/* A rule that allows each word of a list must not allow what it does not see. */
static void test_lists_say_where_they_are_cut(void) {
        Asked a = ASKED_NULL;
        g_autofree char *endless = g_strnfill(500, 'x');
        char word[16];
        Details d;

        for (int i = 0; i < 1000; i++) {
                (void) g_snprintf(word, sizeof(word), "event-%d", i);
                asked_add(a.events, word);
        }
        asked_add(a.pmus, endless);
        asked_add(a.pmus, "cpu");
        details_fill(&d, 1000, 0, &a);
        g_assert_true(g_str_has_suffix(d.events, " ...\""));
        g_assert_cmpuint(strlen(d.events), <=, DETAILS_PRINTABLE_MAX + 2);
        g_assert_cmpstr(d.pmus, ==, "\"...\"");
}

static void test_each_detail_counts(void) {
        static const Asked differing[] = {
                { .target = 1000, .reason = "why" },
                { .target = 1000, .scope = "cpu" },
                { .target = 1000, .mode = "sampling" },
                { .target = 1000, .pmus = "cpu" },
                { .target = 1000, .events = "cycles" },
                { .target = 1000, .cpus = "0" },
                { .target = 1001 },
                { .target = ASKED_NOBODY },
        };
        Details plain, d;

        details_fill(&plain, 1000, 0, &(Asked){ .target = 1000 });
        for (size_t i = 0; i < ELEMENTSOF(differing); i++) {
                details_fill(&d, 1000, 0, &differing[i]);
                g_assert_false(details_equal(&d, &plain));
                g_assert_true(details_equal(&d, &d));
        }
        details_fill(&d, 1001, 0, &(Asked){ .target = 1000 });
        g_assert_false(details_equal(&d, &plain));
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/details/words-stay-words", test_words_stay_words);
        g_test_add_func("/details/nothing-breaks-out-of-the-quotes",
                        test_nothing_breaks_out_of_the_quotes);
        g_test_add_func("/details/broken-utf8-is-shown-as-such", test_broken_utf8_is_shown_as_such);
        g_test_add_func("/details/at-most-128-characters", test_at_most_128_characters);
        g_test_add_func("/details/program-is-quoted-too", test_program_is_quoted_too);
        g_test_add_func("/details/lists-have-each-word-once", test_lists_have_each_word_once);
        g_test_add_func("/details/lists-say-where-they-are-cut", test_lists_say_where_they_are_cut);
        g_test_add_func("/details/each-detail-counts", test_each_detail_counts);
        return g_test_run();
}
