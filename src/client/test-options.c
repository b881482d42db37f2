/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/options.h"

#include <glib.h>

#include "core/timespan.h"

/* The words after "perfalloc", as from the shell. The vector lives until the next call. */
static int parse(Options *ret, Refusal *why, const char *line) {
        static char **argv;
        char *whole = g_strconcat("perfalloc ", line, NULL);
        int argc;

        g_strfreev(argv);
        g_assert_true(g_shell_parse_argv(whole, &argc, &argv, NULL));
        g_free(whole);
        return options_parse(ret, argc, argv, why);
}

static Options parsed(const char *line) {
        Options o = OPTIONS_NULL;

        g_test_message("perfalloc %s", line);
        g_assert_cmpint(parse(&o, NULL, line), ==, 0);
        return o;
}

static void assert_refused(const char *line, const char *words) {
        Options o = OPTIONS_NULL;
        Refusal why;

        g_test_message("perfalloc %s", line);
        g_assert_cmpint(parse(&o, &why, line), ==, REFUSAL_INVALID_ARGS);
        g_test_message("%s", why.text);
        g_assert_nonnull(strstr(why.text, words));
        g_assert_null(o.command);
}

static void nothing_asks_for_the_defaults(void) {
        Options o = parsed("");

        g_assert_false(o.exclusive || o.best_effort || o.background || o.quiet || o.help ||
                       o.version);
        g_assert_cmpuint(o.counters, ==, 0);
        g_assert_cmpuint(o.wait_usec, ==, 0);
        g_assert_null(o.cpus);
        g_assert_null(o.pmus);
        g_assert_null(o.reason);
        g_assert_null(o.lock_file);
        g_assert_null(o.command);
}

static void letters_are_those_of_pcp(void) {
        Options o = parsed("-d -f /some/file -h -v");

        g_assert_true(o.background && o.help && o.version);
        g_assert_cmpstr(o.lock_file, ==, "/some/file");
        g_assert_cmpstr(parsed("-dffile").lock_file, ==, "file");
        g_assert_false(parsed("-D").background);
}

static void letters_have_long_forms(void) {
        Options o = parsed("--daemon --lock-file=F --help --version");

        g_assert_true(o.background && o.help && o.version);
        g_assert_cmpstr(o.lock_file, ==, "F");
        g_assert_false(parsed("--foreground").background);
}

static void last_of_foreground_and_background_counts(void) {
        g_assert_true(parsed("-D -d").background);
        g_assert_false(parsed("-d -D").background);
}

static void hold_options_are_read(void) {
        Options o = parsed("--exclusive --counters=3 --cpus=0-3,8 --wait=2min --best-effort "
                           "--reason='why not' --quiet");

        g_assert_true(o.exclusive && o.best_effort && o.quiet);
        g_assert_cmpuint(o.counters, ==, 3);
        g_assert_cmpstr(o.cpus, ==, "0-3,8");
        g_assert_cmpuint(o.wait_usec, ==, 120 * USEC_PER_SEC);
        g_assert_cmpstr(o.reason, ==, "why not");
        g_assert_cmpuint(parsed("--wait infinity").wait_usec, ==, TIMESPAN_INFINITY);
        g_assert_cmpuint(parsed("--counters=4294967295").counters, ==, UINT32_MAX);
        g_assert_cmpuint(parsed("--counters=3 --counters=0").counters, ==, 0); /* all */
}

static void pmu_may_be_repeated(void) {
        Options o = parsed("--pmu=cpu_core --pmu cpu_atom");

        g_assert_cmpstr(o.pmus[0], ==, "cpu_core");
        g_assert_cmpstr(o.pmus[1], ==, "cpu_atom");
        g_assert_null(o.pmus[2]);
        options_done(&o);
        g_assert_null(o.pmus);
}

static void command_keeps_its_own_options(void) {
        Options o = parsed("--quiet ls -l --quiet -d");

        g_assert_true(o.quiet);
        g_assert_false(o.background);
        g_assert_cmpstr(o.command[0], ==, "ls");
        g_assert_cmpstr(o.command[1], ==, "-l");
        g_assert_cmpstr(o.command[3], ==, "-d");
        g_assert_null(o.command[4]);
        g_assert_cmpstr(parsed("-- -d").command[0], ==, "-d");
}

static void unknown_options_are_named(void) {
        assert_refused("--frobnicate true", "--frobnicate");
        assert_refused("-x true", "'-x'");
        assert_refused("-dx true", "'-x'");
        assert_refused("--c=1", "--c=1"); /* --counters or --cpus */
}

static void missing_and_superfluous_arguments_are_named(void) {
        assert_refused("--wait", "--wait needs an argument: TIME");
        assert_refused("-f", "--lock-file needs an argument: FILE");
        assert_refused("--quiet=yes true", "--quiet takes no argument");
        assert_refused("--daemon=yes", "--daemon takes no argument");
}

static void bad_values_are_named(void) {
        assert_refused("--counters=-1", "--counters");
        assert_refused("--counters=", "--counters");
        assert_refused("--counters=4294967296", "--counters");
        assert_refused("--counters=99999999999999999999999999", "--counters");
        assert_refused("--counters=0x2", "--counters");
        assert_refused("--counters=two", "'two'");
        assert_refused("--wait=soon", "--wait");
        assert_refused("--wait=", "--wait");
        assert_refused("--wait=-5", "--wait");
        assert_refused("--wait=99999999999999999999y", "--wait");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/options/nothing-asks-for-the-defaults", nothing_asks_for_the_defaults);
        g_test_add_func("/options/letters-are-those-of-pcp", letters_are_those_of_pcp);
        g_test_add_func("/options/letters-have-long-forms", letters_have_long_forms);
        g_test_add_func("/options/last-of-foreground-and-background-counts",
                        last_of_foreground_and_background_counts);
        g_test_add_func("/options/hold-options-are-read", hold_options_are_read);
        g_test_add_func("/options/pmu-may-be-repeated", pmu_may_be_repeated);
        g_test_add_func("/options/command-keeps-its-own-options", command_keeps_its_own_options);
        g_test_add_func("/options/unknown-options-are-named", unknown_options_are_named);
        g_test_add_func("/options/missing-and-superfluous-arguments-are-named",
                        missing_and_superfluous_arguments_are_named);
        g_test_add_func("/options/bad-values-are-named", bad_values_are_named);
        return g_test_run();
}
