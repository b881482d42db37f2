/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/moment.h"

#include <glib.h>
#include <time.h>

/* 2026-11-22 12:34:56 UTC */
#define NOW_SEC UINT64_C(1795350896)

static void assert_moment(const char *text, uint64_t expected_sec) {
        uint64_t usec;

        g_test_message("%s", text);
        g_assert_cmpint(moment_parse(text, NOW_SEC * USEC_PER_SEC, &usec), ==, 0);
        g_assert_cmpuint(usec / USEC_PER_SEC, ==, expected_sec);
}

static void moments_are_read(void) {
        const uint64_t today = NOW_SEC - 12 * 3600 - 34 * 60 - 56;

        assert_moment("now", NOW_SEC);
        assert_moment("today", today);
        assert_moment("yesterday", today - 86400);
        assert_moment("2026-11-22", today);
        assert_moment("2026-11-21 10:30", today - 86400 + 37800);
        assert_moment("2026-11-22 00:00:07", today + 7);
        assert_moment("08:15", today + 29700);
        assert_moment("2h", NOW_SEC - 7200);
        assert_moment("1d 1h", NOW_SEC - 90000);
}

static void others_are_refused(void) {
        static const char *const texts[] = { "",      "soon",           "2026-13-01",
                                             "25:00", "12:30 tomorrow", "infinity" };
        uint64_t usec;

        for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
                g_assert_cmpint(moment_parse(texts[i], NOW_SEC * USEC_PER_SEC, &usec), ==, -EINVAL);
}

int main(int argc, char **argv) {
        g_setenv("TZ", "UTC", TRUE);
        tzset();
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/moment/moments-are-read", moments_are_read);
        g_test_add_func("/moment/others-are-refused", others_are_refused);
        return g_test_run();
}
