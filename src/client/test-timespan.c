/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "timespan.h"

#include <glib.h>

static void assert_usec(const char *text, uint64_t expected) {
        uint64_t usec = 0;

        g_test_message("%s", text);
        g_assert_cmpint(timespan_parse(text, &usec, NULL), ==, 0);
        g_assert_cmpuint(usec, ==, expected);
}

static void assert_refused(const char *text, const char *words) {
        uint64_t usec = 77;
        Refusal why;

        g_test_message("'%s'", text);
        g_assert_cmpint(timespan_parse(text, &usec, &why), ==, REFUSAL_INVALID_ARGS);
        g_assert_cmpuint(usec, ==, 77);
        g_assert_nonnull(strstr(why.text, words));
}

static void bare_number_is_seconds(void) {
        assert_usec("0", 0);
        assert_usec("5", 5 * USEC_PER_SEC);
        assert_usec(" 5 ", 5 * USEC_PER_SEC);
        assert_usec("1.5", 1500 * USEC_PER_MSEC);
}

static void units_are_those_of_systemd(void) {
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "7us", 7 },
                { "7usec", 7 },
                { "7µs", 7 },
                { "7μs", 7 },
                { "500ms", 500 * USEC_PER_MSEC },
                { "500msec", 500 * USEC_PER_MSEC },
                { "3s", 3 * USEC_PER_SEC },
                { "3sec", 3 * USEC_PER_SEC },
                { "1second", USEC_PER_SEC },
                { "3seconds", 3 * USEC_PER_SEC },
                { "2m", 120 * USEC_PER_SEC },
                { "2min", 120 * USEC_PER_SEC },
                { "2minutes", 120 * USEC_PER_SEC },
                { "1h", 3600 * USEC_PER_SEC },
                { "1hr", 3600 * USEC_PER_SEC },
                { "1hour", 3600 * USEC_PER_SEC },
                { "1d", 86400 * USEC_PER_SEC },
                { "1week", 7 * 86400 * USEC_PER_SEC },
                { "1M", 2629800 * USEC_PER_SEC },
                { "1y", 31557600 * USEC_PER_SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_usec(cases[i].text, cases[i].usec);
}

static void terms_add_up(void) {
        assert_usec("2min 30s", 150 * USEC_PER_SEC);
        assert_usec("1h30min", 5400 * USEC_PER_SEC);
        assert_usec("1 s 5 ms", USEC_PER_SEC + 5 * USEC_PER_MSEC);
}

static void fractions_count_to_the_microsecond(void) {
        assert_usec("1.5h", 5400 * USEC_PER_SEC);
        assert_usec(".25s", 250 * USEC_PER_MSEC);
        assert_usec("0.0000019s", 1);
        assert_usec("1.9us", 1);
        assert_usec("0.1234567890123456789012345678901234567890s", 123456);
}

static void infinity_is_the_largest_value(void) {
        assert_usec("infinity", TIMESPAN_INFINITY);
        assert_usec(" infinity ", TIMESPAN_INFINITY);
}

static void nonsense_is_refused_with_words(void) {
        assert_refused("", "a number is missing");
        assert_refused("  ", "a number is missing");
        assert_refused("s", "a number is missing");
        assert_refused("-1s", "a number is missing");
        assert_refused(".", "a number is missing");
        assert_refused("5 parsecs", "no such unit");
        assert_refused("5S", "no such unit");
        assert_refused("infinity5", "a number is missing");
        assert_refused("1 2", "a unit is missing");
        assert_refused("1s 2", "a unit is missing");
        assert_refused("1.2.3s", "a unit is missing");
        assert_refused("5+s", "a unit is missing");
        assert_refused("0x10", "no such unit");
}

static void overlong_is_refused_not_wrapped(void) {
        assert_usec("18446744073709551614us", UINT64_MAX - 1);
        assert_refused("18446744073709551615us", "too long");
        assert_refused("18446744073709551616us", "too long");
        assert_refused("18446744073709551615", "too long");
        assert_refused("99999999999999999999999999999999999", "too long");
        assert_refused("500000y 500000y", "too long");
}

static void formatted_time_is_short(void) {
        static const struct {
                uint64_t usec;
                const char *text;
        } cases[] = {
                { 0, "0 µs" },           { 143, "143 µs" },     { 999, "999 µs" },
                { 1000, "1.0 ms" },      { 12345, "12.3 ms" },  { 999999, "999.9 ms" },
                { 1000000, "1.00 s" },   { 2109999, "2.10 s" }, { 3600000000, "3600.00 s" },
        };
        char text[TIMESPAN_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                timespan_format(cases[i].usec, text);
                g_assert_cmpstr(text, ==, cases[i].text);
        }
        timespan_format(UINT64_MAX, text);
        g_assert_cmpstr(text, ==, "18446744073709.55 s");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/timespan/bare-number-is-seconds", bare_number_is_seconds);
        g_test_add_func("/timespan/units-are-those-of-systemd", units_are_those_of_systemd);
        g_test_add_func("/timespan/terms-add-up", terms_add_up);
        g_test_add_func("/timespan/fractions-count-to-the-microsecond",
                        fractions_count_to_the_microsecond);
        g_test_add_func("/timespan/infinity-is-the-largest-value", infinity_is_the_largest_value);
        g_test_add_func("/timespan/nonsense-is-refused-with-words", nonsense_is_refused_with_words);
        g_test_add_func("/timespan/overlong-is-refused-not-wrapped", overlong_is_refused_not_wrapped);
        g_test_add_func("/timespan/formatted-time-is-short", formatted_time_is_short);
        return g_test_run();
}
