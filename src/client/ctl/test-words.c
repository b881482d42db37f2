/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/words.h"

#include <glib.h>

static void assert_rate(double rate, const char *expected) {
        char *text = words_rate(rate);

        g_test_message("%f", rate);
        g_assert_cmpstr(text, ==, expected);
        free(text);
}

static void rates_have_three_digits(void) {
        assert_rate(0, "0");
        assert_rate(7, "7");
        assert_rate(0.4, "0.40");
        assert_rate(12.34, "12.3");
        assert_rate(999.4, "999");
        assert_rate(999.6, "1.00k");
        assert_rate(1234, "1.23k");
        assert_rate(12340, "12.3k");
        assert_rate(123400, "123k");
        assert_rate(999600, "1.00M");
        assert_rate(2e9, "2.00G");
        assert_rate(1e18, "1.00E");
        assert_rate(1e21, "1000E");
}

static void users_have_names_or_numbers(void) {
        char *root = words_user(0), *nobody = words_user(3999999999u);

        g_assert_cmpstr(root, ==, "root");
        g_assert_cmpstr(nobody, ==, "3999999999");
        free(root);
        free(nobody);
}

static void labels_cannot_be_left(void) {
        char *label = words_label("a\"b\\c\nd");

        g_assert_cmpstr(label, ==, "a\\\"b\\\\c\\nd");
        free(label);
}

static void json_strings_cannot_be_left(void) {
        char *text = words_json("a\"b\\c\nd\033[m\177\u00e4");

        g_assert_cmpstr(text, ==, "\"a\\\"b\\\\c\\u000ad\\u001b[m\\u007f\u00e4\"");
        free(text);
}

static void json_strings_are_utf8(void) {
        char *text = words_json("\xff"
                                "a\xc3\x28\xe2\x82");

        g_assert_cmpstr(text, ==, "\"\ufffda\ufffd(\ufffd\ufffd\"");
        free(text);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/words/rates-have-three-digits", rates_have_three_digits);
        g_test_add_func("/words/users-have-names-or-numbers", users_have_names_or_numbers);
        g_test_add_func("/words/labels-cannot-be-left", labels_cannot_be_left);
        g_test_add_func("/words/json-strings-cannot-be-left", json_strings_cannot_be_left);
        g_test_add_func("/words/json-strings-are-utf8", json_strings_are_utf8);
        return g_test_run();
}
