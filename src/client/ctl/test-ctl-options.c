/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/ctl-options.h"

#include <glib.h>

/* The words after "perfallocctl", as from the shell. The vector lives until the next call. */
static int parse(CtlOptions *ret, Refusal *why, const char *line) {
        static char **argv;
        char *whole = g_strconcat("perfallocctl ", line, NULL);
        int argc;

        g_strfreev(argv);
        g_test_message("%s", whole);
        g_assert_true(g_shell_parse_argv(whole, &argc, &argv, NULL));
        g_free(whole);
        return ctl_options_parse(ret, argc, argv, why);
}

static CtlOptions parsed(const char *line) {
        CtlOptions o = CTL_OPTIONS_NULL;

        g_assert_cmpint(parse(&o, NULL, line), ==, 0);
        return o;
}

static void assert_refused(const char *line, const char *words) {
        CtlOptions o = CTL_OPTIONS_NULL;
        Refusal why;

        g_assert_cmpint(parse(&o, &why, line), ==, REFUSAL_INVALID_ARGS);
        g_test_message("%s", why.text);
        g_assert_nonnull(strstr(why.text, words));
        g_assert_null(o.words);
}

static void nothing_is_fine(void) {
        CtlOptions o = parsed("");

        g_assert_null(o.words);
        g_assert_null(o.command);
        g_assert_cmpuint(o.given, ==, 0);
        ctl_options_done(&o);
}

static void options_stand_anywhere(void) {
        CtlOptions o = parsed("--json open -p 5 cycles:u --name x instructions:u --group");

        g_assert_true(o.json && o.group);
        g_assert_cmpuint(o.pid, ==, 5);
        g_assert_cmpstr(o.name, ==, "x");
        g_assert_cmpuint(o.n_words, ==, 3);
        g_assert_cmpstr(o.words[0], ==, "open");
        g_assert_cmpstr(o.words[1], ==, "cycles:u");
        g_assert_cmpstr(o.words[2], ==, "instructions:u");
        g_assert_null(o.words[3]);
        g_assert_null(o.command);
        ctl_options_done(&o);
}

static void command_keeps_its_options(void) {
        CtlOptions o = parsed("open cycles:u -- ls --json -- -l");

        g_assert_false(o.json);
        g_assert_cmpuint(o.n_words, ==, 2);
        g_assert_cmpstr(o.command[0], ==, "ls");
        g_assert_cmpstr(o.command[1], ==, "--json");
        g_assert_cmpstr(o.command[2], ==, "--");
        g_assert_cmpstr(o.command[3], ==, "-l");
        g_assert_null(o.command[4]);
        ctl_options_done(&o);
}

static void two_dashes_may_be_an_argument(void) {
        CtlOptions o = parsed("hold --reason -- --json");

        g_assert_cmpstr(o.hold.reason, ==, "--");
        g_assert_true(o.json);
        g_assert_null(o.command);
        ctl_options_done(&o);
}

static void times_and_numbers_are_read(void) {
        CtlOptions o = parsed("watch -i 100ms -n 7");

        g_assert_cmpuint(o.interval_usec, ==, 100 * USEC_PER_MSEC);
        g_assert_cmpuint(o.count, ==, 7);
        ctl_options_done(&o);
        assert_refused("watch -i never", "--interval");
        assert_refused("watch -n 0", "--count");
        assert_refused("open -p -1", "--pid");
}

static void zero_is_refused_where_it_means_nothing(void) {
        CtlOptions o = parsed("open --priority=7 --priority=0 --counters=3 --counters=0");

        g_assert_cmpuint(o.priority, ==, 0);
        g_assert_cmpuint(o.hold.counters, ==, 0);
        ctl_options_done(&o);
        assert_refused("open --pid=0", "--pid: not a number from 1");
        assert_refused("hold --pidfd=0", "--pidfd: not a number from 1");
        assert_refused("open --repeat=0", "--repeat: not a number from 1");
        assert_refused("watch --interval=0", "--interval: not a time above 0: '0'");
        assert_refused("status -w -i 0s", "--interval: not a time above 0: '0s'");
        assert_refused("watch -i 0.5us", "--interval: not a time above 0");
}

static void options_go_with_their_verbs(void) {
        CtlOptions o = parsed("hold --lifetime=1h --cpus=0");
        Refusal why;

        g_assert_cmpint(ctl_options_check(&o, "hold", &why), ==, 0);
        g_assert_cmpint(ctl_options_check(&o, "open", &why), ==, REFUSAL_INVALID_ARGS);
        g_assert_nonnull(strstr(why.text, "--lifetime"));
        /* which "hold" is the beginning of */
        g_assert_cmpint(ctl_options_check(&o, "holds", &why), ==, REFUSAL_INVALID_ARGS);
        ctl_options_done(&o);
        o = parsed("attach --descendants --json");
        g_assert_cmpint(ctl_options_check(&o, "attach", &why), ==, 0);
        g_assert_cmpint(ctl_options_check(&o, "detach", &why), ==, REFUSAL_INVALID_ARGS);
        ctl_options_done(&o);
}

static void only_one_place_is_asked(void) {
        assert_refused("-H there -M here status", "--machine");
}

static void what_was_read_before_an_error_is_given_back(void) {
        assert_refused("hold --pmu=a --pmu=b word --frobnicate", "--frobnicate");
}

#define ADD(name, f) g_test_add_func("/ctl-options/" name, f)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        ADD("nothing-is-fine", nothing_is_fine);
        ADD("options-stand-anywhere", options_stand_anywhere);
        ADD("command-keeps-its-options", command_keeps_its_options);
        ADD("two-dashes-may-be-an-argument", two_dashes_may_be_an_argument);
        ADD("times-and-numbers-are-read", times_and_numbers_are_read);
        ADD("zero-is-refused-where-it-means-nothing", zero_is_refused_where_it_means_nothing);
        ADD("options-go-with-their-verbs", options_go_with_their_verbs);
        ADD("only-one-place-is-asked", only_one_place_is_asked);
        ADD("what-was-read-before-an-error-is-given-back",
            what_was_read_before_an_error_is_given_back);
        return g_test_run();
}
