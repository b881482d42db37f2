/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/wording.h"

#include <glib.h>

static void assert_words(const char *name, const char *message, const char *expected) {
        sd_bus_error error = SD_BUS_ERROR_MAKE_CONST(name, message);
        char text[REFUSAL_TEXT_MAX];

        wording_of_error(&error, text);
        g_assert_cmpstr(text, ==, expected);
}

static void test_keys_become_options(void) {
        static const struct {
                const char *message, *expected;
        } rows[] = {
                { "option 'pmus': this machine has no PMU 'x'",
                  "--pmu: this machine has no PMU 'x'" },
                { "in use by: perf; option 'best_effort' grants the hold all the same",
                  "in use by: perf; --best-effort grants the hold all the same" },
                { "options 'pinned' and 'descendants' exclude each other",
                  "--pinned and --descendants exclude each other" },
                /* no keys of ours */
                { "event 'pid' and 'name' are words", "event 'pid' and 'name' are words" },
                { "option 'unheard' stays", "option 'unheard' stays" },
                { "'a' and 'role'", "'a' and 'role'" },
                { "", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_words(SD_BUS_ERROR_INVALID_ARGS, rows[i].message, rows[i].expected);
}

static void test_unknown_objects_are_named_alike(void) {
        static const struct {
                const char *message, *expected;
        } rows[] = {
                { "Unknown object '/org/perfalloc1/hold/77'.", "there is no hold 77" },
                { "there is no counter '/org/perfalloc1/counter/9'", "there is no counter 9" },
                { "Unknown object '/org/perfalloc1/pmu/uncore_5fimc_5f0'.",
                  "there is no PMU uncore_imc_0" },
                { "something else", "something else" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_words(SD_BUS_ERROR_UNKNOWN_OBJECT, rows[i].message, rows[i].expected);
}

static void test_pidfd_is_the_process_that_was_named(void) {
        assert_words(SD_BUS_ERROR_INVALID_ARGS, "option 'pidfd': has ended", "--pid: has ended");
        wording_has_pidfd();
        assert_words(SD_BUS_ERROR_INVALID_ARGS, "option 'pidfd': has ended", "--pidfd: has ended");
        assert_words(SD_BUS_ERROR_INVALID_ARGS, "option 'pid': no", "--pid: no");
}

static void test_long_texts_are_cut(void) {
        g_autofree char *message = g_strnfill(2 * REFUSAL_TEXT_MAX, 'x');
        g_autofree char *expected = g_strnfill(REFUSAL_TEXT_MAX - 1, 'x');

        assert_words(SD_BUS_ERROR_INVALID_ARGS, message, expected);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/wording/keys-become-options", test_keys_become_options);
        g_test_add_func("/wording/unknown-objects-are-named-alike",
                        test_unknown_objects_are_named_alike);
        g_test_add_func("/wording/pidfd-is-the-process-that-was-named",
                        test_pidfd_is_the_process_that_was_named);
        g_test_add_func("/wording/long-texts-are-cut", test_long_texts_are_cut);
        return g_test_run();
}
