/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-options.h"

#include <stdio.h>

#include "client/option-table.h"
#include "client/paranoid-view.h"

#define AT(field) offsetof(CtlOptions, field)

static const OptionRow rows[] = {
        { 'h', "help", NULL, OPTION_SET, AT(help), "display this help and exit" },
        { 'V', "version", NULL, OPTION_SET, AT(version), "display the version and exit" },
        { 'H', "host", "HOST", OPTION_TEXT, AT(host), "use the service of another host, over ssh" },
        { 'M', "machine", "NAME", OPTION_TEXT, AT(machine),
          "use the service of a local container" },
        { 0, "json", NULL, OPTION_SET, AT(json), "print JSON" },
        { 0, "no-legend", NULL, OPTION_SET, AT(no_legend), "do not print headings" },
        { 0, "no-pager", NULL, OPTION_SET, AT(no_pager), "do not use a pager" },
        { 'q', "quiet", NULL, OPTION_SET, AT(quiet), "print only results and errors" },

        { 'w', "watch", NULL, OPTION_SET, AT(watch), "print the status again when it changes",
          "status" },
        { 0, "all", NULL, OPTION_SET, AT(all), "also list holds that have just ended", "holds" },

        { 0, "exclusive", NULL, OPTION_SET, AT(hold.exclusive),
          "do not share the counters with other holds", "hold" },
        { 0, "counters", "N", OPTION_NUMBER, AT(hold.counters),
          "hold N counters on each CPU (default: all)", "hold" },
        { 0, "pmu", "NAME", OPTION_TEXTS, AT(hold.pmus),
          "hold counters of this PMU (default: the core PMUs)", "hold" },
        { 0, "wait", "TIME", OPTION_TIME, AT(hold.wait_usec),
          "wait for other holds (default: fail at once)", "hold" },
        { 0, "deadline", "TIME", OPTION_TIME, AT(deadline_usec),
          "time for monitors to yield (default: 500ms)", "hold" },
        { 0, "best-effort", NULL, OPTION_SET, AT(hold.best_effort),
          "hold them even if not all become free", "hold" },
        { 0, "require", NULL, OPTION_SET, AT(hold.require), "fail if there is nothing to hold",
          "hold" },
        { 0, "reason", "TEXT", OPTION_TEXT, AT(hold.reason), "purpose, shown to others", "hold" },
        { 0, "lifetime", "TIME", OPTION_TIME, AT(lifetime_usec),
          "release the hold after TIME (default: never)", "hold extend" },
        { 0, "uid", "USER", OPTION_TEXT, AT(uid), "hold the counters for this user", "hold" },
        { 0, "tag", "TEXT", OPTION_TEXT, AT(tag), "name of the hold", "hold release extend" },
        { 0, "pidfd", "PID", OPTION_POSITIVE, AT(pidfd), "release the hold when this process ends",
          "hold" },
        { 0, "cpus", "LIST", OPTION_TEXT, AT(hold.cpus), "CPUs to hold or count, such as 0-3,8",
          "hold open watch" },

        { 'p', "pid", "PID", OPTION_POSITIVE, AT(pid), "count this process", "open watch" },
        { 'a', "all-cpus", NULL, OPTION_SET, AT(all_cpus), "count on all CPUs", "open watch" },
        { 0, "cgroup", "PATH", OPTION_TEXT, AT(cgroup),
          "cgroup to count; hold: release when it is empty", "hold open watch" },
        { 0, "group", NULL, OPTION_SET, AT(group), "count all events together or none",
          "open watch" },
        { 0, "no-fallback", NULL, OPTION_SET, AT(no_fallback),
          "fail rather than count user space only", "open watch" },
        { 0, "pinned", NULL, OPTION_SET, AT(pinned),
          "never multiplex; of CPUs and cgroups in a hold", "open watch" },
        { 0, "role", "ROLE", OPTION_TEXT, AT(role), "foreground (the default) or monitor",
          "open watch" },
        { 0, "priority", "N", OPTION_NUMBER, AT(priority), "monitors with a higher N yield later",
          "open watch" },
        { 0, "yield", "WHEN", OPTION_TEXT, AT(yield),
          "monitors yield: always (default), exclusive, never", "open watch" },
        { 0, "name", "TEXT", OPTION_TEXT, AT(name), "name of the counters", "open watch" },
        { 0, "descendants", NULL, OPTION_SET, AT(descendants),
          "also count the descendants of the process", "open watch attach" },
        { 0, "detached", NULL, OPTION_SET, AT(detached), "do not attach any process yet", "open" },
        { 0, "stopped", NULL, OPTION_SET, AT(stopped), "do not start counting yet", "open" },
        { 0, "persistent", NULL, OPTION_SET, AT(persistent),
          "keep the counters open; print their numbers", "open" },
        { 'r', "repeat", "N", OPTION_POSITIVE, AT(repeat), "run the command N times; print means",
          "open" },
        { 'x', "separator", "TEXT", OPTION_TEXT, AT(separator),
          "print lines of fields with TEXT between them", "open" },
        { 'o', "output", "FILE", OPTION_TEXT, AT(output), "write the result to FILE", "open" },

        { 0, "allow", "ACTION,...", OPTION_TEXT, AT(hold.allow),
          "what COMMAND may do (default: sample-own)", "run" },
        { 0, "paranoid", "LEVEL", OPTION_TEXT, AT(hold.paranoid),
          "what COMMAND reads as kernel.perf_event_paranoid", "run" },

        { 0, "each", NULL, OPTION_SET, AT(each), "print a row for each CPU or thread", "read" },
        { 0, "since", "TIME", OPTION_TEXT, AT(since),
          "print entries from TIME on (today, 14:30, 2h, ...)", "log" },
        { 0, "until", "TIME", OPTION_TEXT, AT(until), "print entries until TIME", "log" },
        { 0, "user", "USER", OPTION_TEXT, AT(user), "print entries about this user", "log" },
        { 0, "plot", "FILE", OPTION_TEXT, AT(plot), "draw what was shown into FILE (SVG)",
          "watch" },
        { 'i', "interval", "TIME", OPTION_INTERVAL, AT(interval_usec),
          "time between readings (default: 1s)", "status watch" },
        { 'n', "count", "N", OPTION_POSITIVE, AT(count),
          "stop after N readings; log: print the last N entries", "status watch log" },
        { 0, "format", "FORMAT", OPTION_TEXT, AT(format), "prometheus (the default) or openmetrics",
          "metrics" },
};

static const OptionTable table = {
        .rows = rows, .n_rows = ELEMENTSOF(rows), .mixed = true, .ending = "run"
};

_Static_assert(ELEMENTSOF(rows) <= OPTION_ROWS_MAX, "given has a bit for each");

int ctl_options_parse(CtlOptions *ret, int argc, char **argv, Refusal *why) {
        _cleanup_(ctl_options_done) CtlOptions o = CTL_OPTIONS_NULL;
        OptionWords words;
        int r;

        r = option_table_parse(&table, &o, argc, argv, &words, why);
        if (r != 0)
                return r;
        o.words = words.words;
        o.n_words = words.n_words;
        o.command = words.rest;
        o.given = words.given;
        if (o.host && o.machine)
                return refuse(why, REFUSAL_INVALID_ARGS, "--host and --machine exclude each other");
        if (o.hold.paranoid)
                r = paranoid_view_check(o.hold.paranoid, why);
        if (r != 0)
                return r;
        *ret = o;
        o = CTL_OPTIONS_NULL;
        return 0;
}

void ctl_options_done(CtlOptions *o) {
        options_done(&o->hold);
        free(o->words);
        *o = CTL_OPTIONS_NULL;
}

int ctl_options_check(const CtlOptions *o, const char *verb, Refusal *why) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (o->given & UINT64_C(1) << i && !option_row_goes_with(&rows[i], verb))
                        return refuse(why, REFUSAL_INVALID_ARGS, "--%s cannot be used with %s",
                                      rows[i].name, verb);
        return 0;
}

void ctl_options_print(const char *verb) {
        option_table_print(&table, verb);
}
