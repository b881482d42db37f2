/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "options.h"

#include <stdio.h>

#include "client/option-table.h"
#include "client/paranoid-view.h"

static const OptionRow rows[] = {
        { 'D', "foreground", NULL, OPTION_CLEAR, offsetof(Options, background),
          "run in the foreground (the default)" },
        { 'd', "daemon", NULL, OPTION_SET, offsetof(Options, background),
          "run in the background once the counters are held" },
        { 'f', "lock-file", "FILE", OPTION_TEXT, offsetof(Options, lock_file),
          "also take PCP's lock on FILE, for pmdaperfevent" },
        { 'h', "help", NULL, OPTION_SET, offsetof(Options, help), "display this help and exit" },
        { 'v', "version", NULL, OPTION_SET, offsetof(Options, version),
          "display the version and exit" },
        { 'V', NULL, NULL, OPTION_SET, offsetof(Options, version) },
        { 0, "exclusive", NULL, OPTION_SET, offsetof(Options, exclusive),
          "do not share the counters with other holds" },
        { 0, "counters", "N", OPTION_NUMBER, offsetof(Options, counters),
          "hold N counters on each CPU (default: all)" },
        { 0, "cpus", "LIST", OPTION_TEXT, offsetof(Options, cpus),
          "CPUs to hold, such as 0-3,8 (default: all)" },
        { 0, "pmu", "NAME", OPTION_TEXTS, offsetof(Options, pmus),
          "hold counters of this PMU (default: the core PMUs)" },
        { 0, "wait", "TIME", OPTION_TIME, offsetof(Options, wait_usec),
          "wait for other holds, e.g. 5s, 2min, infinity\n"
          "                          (default: fail at once)" },
        { 0, "best-effort", NULL, OPTION_SET, offsetof(Options, best_effort),
          "continue even if not all counters become free" },
        { 0, "require", NULL, OPTION_SET, offsetof(Options, require),
          "fail if there is nothing to hold" },
        { 0, "reason", "TEXT", OPTION_TEXT, offsetof(Options, reason), "purpose, shown to others" },
        { 0, "broker", "WHEN", OPTION_TEXT, offsetof(Options, broker_word),
          "open COMMAND's perf events for it: yes, no or\n"
          "                          auto (default: auto, only if the kernel refuses)" },
        { 0, "allow", "ACTION,...", OPTION_TEXT, offsetof(Options, allow),
          "what COMMAND may do through the broker\n"
          "                          (default: sample-own)" },
        { 0, "paranoid", "LEVEL", OPTION_TEXT, offsetof(Options, paranoid),
          "what COMMAND reads as kernel.perf_event_paranoid" },
        { 'q', "quiet", NULL, OPTION_SET, offsetof(Options, quiet), "print only errors" },
};

static const OptionTable table = { .rows = rows, .n_rows = ELEMENTSOF(rows) };

int options_parse(Options *ret, int argc, char **argv, Refusal *why) {
        _cleanup_(options_done) Options o = OPTIONS_NULL;
        OptionWords words;
        int r;

        r = option_table_parse(&table, &o, argc, argv, &words, why);
        if (r != 0)
                return r;
        o.command = words.rest;
        if (o.broker_word)
                r = launch_mode_parse(o.broker_word, &o.broker, why);
        if (r == 0 && o.allow)
                r = launch_allow_check(o.allow, why);
        if (r == 0 && o.paranoid)
                r = paranoid_view_check(o.paranoid, why);
        if (r != 0)
                return r;
        *ret = o;
        o = OPTIONS_NULL;
        return 0;
}

void options_done(Options *o) {
        free(o->pmus);
        *o = OPTIONS_NULL;
}

void options_print_help(void) {
        printf("Usage: perfalloc [OPTION]... [COMMAND [ARG]...]\n"
               "Hold the performance counters of this machine while COMMAND runs, or until\n"
               "interrupted. Monitors that use these counters yield for that time.\n"
               "\n");
        option_table_print(&table, NULL);
        printf("\n"
               "The exit status is that of COMMAND, 126 or 127 if it cannot be run, and 1 if the\n"
               "counters cannot be held. See perfalloc(1).\n");
}
