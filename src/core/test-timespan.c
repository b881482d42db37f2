/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/timespan.h"

#include <glib.h>
#include <inttypes.h>

static void assert_usec(const char *text, uint64_t expected) {
        uint64_t usec = expected + 1;

        g_test_message("'%s'", text);
        g_assert_cmpint(timespan_parse(text, &usec), ==, 0);
        g_assert_cmpuint(usec, ==, expected);
}

static void assert_fails(const char *text, int error) {
        uint64_t usec = 77;

        g_test_message("'%s'", text);
        g_assert_cmpint(timespan_parse(text, &usec), ==, error);
        g_assert_cmpuint(usec, ==, 77);
}

static void test_bare_number_is_seconds(void) {
        assert_usec("0", 0);
        assert_usec("5", 5 * USEC_PER_SEC);
        assert_usec(" 5\t", 5 * USEC_PER_SEC);
        assert_usec("1.5", 1500 * USEC_PER_MSEC);
}

static void test_units_are_those_of_systemd(void) {
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "7us", 7 },
                { "7usec", 7 },
                { "500ms", 500 * USEC_PER_MSEC },
                { "500msec", 500 * USEC_PER_MSEC },
                { "3s", 3 * USEC_PER_SEC },
                { "3sec", 3 * USEC_PER_SEC },
                { "1second", USEC_PER_SEC },
                { "3 seconds", 3 * USEC_PER_SEC },
                { "2m", 120 * USEC_PER_SEC },
                { "2min", 120 * USEC_PER_SEC },
                { "1minute", 60 * USEC_PER_SEC },
                { "2minutes", 120 * USEC_PER_SEC },
                { "1h", 3600 * USEC_PER_SEC },
                { "1hr", 3600 * USEC_PER_SEC },
                { "1hour", 3600 * USEC_PER_SEC },
                { "2hours", 7200 * USEC_PER_SEC },
                { "1d", 86400 * USEC_PER_SEC },
                { "1day", 86400 * USEC_PER_SEC },
                { "2days", 2 * 86400 * USEC_PER_SEC },
                { "1w", 7 * 86400 * USEC_PER_SEC },
                { "1week", 7 * 86400 * USEC_PER_SEC },
                { "2weeks", 14 * 86400 * USEC_PER_SEC },
                { "1M", 2629800 * USEC_PER_SEC },
                { "1month", 2629800 * USEC_PER_SEC },
                { "12months", 31557600 * USEC_PER_SEC },
                { "1y", 31557600 * USEC_PER_SEC },
                { "1year", 31557600 * USEC_PER_SEC },
                { "2years", 2 * 31557600 * USEC_PER_SEC },
                { "7\302\265s", 7 },
                { "7 \316\274s", 7 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                assert_usec(cases[i].text, cases[i].usec);
}

static void test_terms_add_up(void) {
        assert_usec("2min 30s", 150 * USEC_PER_SEC);
        assert_usec("1h30min", 5400 * USEC_PER_SEC);
        assert_usec("1 s 5 ms", USEC_PER_SEC + 5 * USEC_PER_MSEC);
        assert_usec("1s 1s 1s", 3 * USEC_PER_SEC);
}

static void test_fractions_count_to_the_microsecond(void) {
        assert_usec("1.5h", 5400 * USEC_PER_SEC);
        assert_usec(".25s", 250 * USEC_PER_MSEC);
        assert_usec("0.000001s", 1);
        assert_usec("0.0000019s", 1);
        assert_usec("1.9us", 1);
        assert_usec("0.1234567890123456789012345678901234567890s", 123456);
        assert_usec("0.999999w", 604799395200);
}

static void test_infinity_is_the_largest_value(void) {
        assert_usec("infinity", TIMESPAN_INFINITY);
        assert_usec(" infinity ", TIMESPAN_INFINITY);
        assert_fails("infinity5", -EINVAL);
        assert_fails("1s infinity", -EINVAL);
        assert_fails("infinitys", -EINVAL);
}

static void test_nonsense_is_no_time(void) {
        static const char *const words[] = {
                "",          " ",        "s",         ".",      "-1s",   "+1s", "5.",
                "5.s",       "1.2.3s",   "1..2s",     "5 S",    "5secs", "5x",  "5+s",
                "0x10",      "1,5s",     "5 parsecs", "s5",     "1e3s",  "5\n", "5s;",
                "5\303\244", "\303\244", "5\302\265", "5Month", "5Y",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
                assert_fails(words[i], -EINVAL);
}

static void test_more_than_fits_is_refused_and_not_wrapped(void) {
        assert_usec("18446744073709551614us", UINT64_MAX - 1);
        assert_usec("18446744073709s 551614us", UINT64_MAX - 1);
        assert_fails("18446744073709551615us", -ERANGE);
        assert_fails("18446744073709551616us", -ERANGE);
        assert_fails("18446744073709551615s", -ERANGE);
        assert_fails("18446744073709s 551615us", -ERANGE);
        assert_fails("18446744073709s 551616us", -ERANGE);
        assert_fails("18446744073709.6s", -ERANGE);
        assert_fails("99999999999999999999999999999999999", -ERANGE);
        assert_fails("20000000w 20000000w", -ERANGE);
}

static void assert_format(uint64_t usec, const char *expected) {
        char *text = timespan_format(usec);

        g_test_message("%" PRIu64, usec);
        g_assert_cmpstr(text, ==, expected);
        free(text);
}

static void test_formatted_spans_have_two_units_at_most(void) {
        assert_format(0, "0us");
        assert_format(999, "999us");
        assert_format(1000, "1ms");
        assert_format(999999, "999ms");
        assert_format(1000000, "1s");
        assert_format(1049999, "1s");
        assert_format(1500000, "1.5s");
        assert_format(9999999, "9.9s");
        assert_format(59999999, "59s");
        assert_format(60 * USEC_PER_SEC, "1min");
        assert_format(150 * USEC_PER_SEC, "2min 30s");
        assert_format(3600 * USEC_PER_SEC - 1, "59min 59s");
        assert_format(3600 * USEC_PER_SEC, "1h");
        assert_format(3660 * USEC_PER_SEC, "1h 1min");
        assert_format(86400 * USEC_PER_SEC, "1d");
        assert_format(90000 * USEC_PER_SEC, "1d 1h");
        assert_format(UINT64_MAX - 1, "213503982d 8h");
        assert_format(TIMESPAN_INFINITY, "infinity");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/timespan/bare-number-is-seconds", test_bare_number_is_seconds);
        g_test_add_func("/timespan/units-are-those-of-systemd", test_units_are_those_of_systemd);
        g_test_add_func("/timespan/terms-add-up", test_terms_add_up);
        g_test_add_func("/timespan/fractions-count-to-the-microsecond",
                        test_fractions_count_to_the_microsecond);
        g_test_add_func("/timespan/infinity-is-the-largest-value",
                        test_infinity_is_the_largest_value);
        g_test_add_func("/timespan/nonsense-is-no-time", test_nonsense_is_no_time);
        g_test_add_func("/timespan/more-than-fits-is-refused-and-not-wrapped",
                        test_more_than_fits_is_refused_and_not_wrapped);
        g_test_add_func("/timespan/formatted-spans-have-two-units-at-most",
                        test_formatted_spans_have_two_units_at_most);
        return g_test_run();
}
