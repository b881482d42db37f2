/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-options.h"

#include <stdio.h>

#include "client/option-table.h"

#define AT(field) offsetof(CtlOptions, field)

static const OptionRow rows[] = {
        { 'h', "help", NULL, OPTION_SET, AT(help), "display this help and exit" },
        { 0, "version", NULL, OPTION_SET, AT(version), "display the version and exit" },
        { 'H', "host", "HOST", OPTION_TEXT, AT(host), "ask on another host, over ssh" },
        { 'M', "machine", "NAME", OPTION_TEXT, AT(machine), "ask in a local container" },
        { 0, "json", NULL, OPTION_SET, AT(json), "print JSON" },
        { 0, "no-legend", NULL, OPTION_SET, AT(no_legend), "print no headings" },
        { 0, "no-pager", NULL, OPTION_SET, AT(no_pager), "do not use a pager" },
        { 'q', "quiet", NULL, OPTION_SET, AT(quiet), "say nothing but results and errors" },

        { 0, "exclusive", NULL, OPTION_SET, AT(hold.exclusive),
          "let nobody else hold them at the same time", "hold" },
        { 0, "counters", "N", OPTION_NUMBER, AT(hold.counters),
          "hold N counters on each CPU (default: all)", "hold" },
        { 0, "pmu", "NAME", OPTION_TEXTS, AT(hold.pmus),
          "hold those of this PMU; may be repeated (default: the core PMUs)", "hold" },
        { 0, "wait", "TIME", OPTION_TIME, AT(hold.wait_usec),
          "wait that long for other holders (default: not)", "hold" },
        { 0, "deadline", "TIME", OPTION_TIME, AT(deadline_usec),
          "how long monitors may take to give way (default: 500ms)", "hold" },
        { 0, "best-effort", NULL, OPTION_SET, AT(hold.best_effort),
          "hold them even if somebody does not give way", "hold" },
        { 0, "reason", "TEXT", OPTION_TEXT, AT(hold.reason), "what for", "hold" },
        { 0, "lifetime", "TIME", OPTION_TIME, AT(lifetime_usec),
          "how long it lasts (default: until it is released)", "hold extend" },
        { 0, "uid", "USER", OPTION_TEXT, AT(uid), "hold them for this user", "hold" },
        { 0, "tag", "TEXT", OPTION_TEXT, AT(tag), "name the hold, for asking again and releasing",
          "hold release extend" },
        { 0, "pidfd", "PID", OPTION_NUMBER, AT(pidfd), "hold them until this process ends",
          "hold" },
        { 0, "cpus", "LIST", OPTION_TEXT, AT(hold.cpus),
          "hold, or count, on these CPUs, as in 0-3,8", "hold open watch" },

        { 'p', "pid", "PID", OPTION_NUMBER, AT(pid), "count this process", "open watch" },
        { 'a', "all-cpus", NULL, OPTION_SET, AT(all_cpus), "count on all CPUs", "open watch" },
        { 0, "cgroup", "PATH", OPTION_TEXT, AT(cgroup),
          "count, or hold until it is empty, this cgroup, absolute or below /sys/fs/cgroup",
          "hold open watch" },
        { 0, "descendants", NULL, OPTION_SET, AT(descendants), "count its descendants too",
          "open watch attach" },
        { 0, "detached", NULL, OPTION_SET, AT(detached), "count no process yet, and do not start",
          "open" },
        { 0, "stopped", NULL, OPTION_SET, AT(stopped), "do not start yet", "open" },
        { 0, "group", NULL, OPTION_SET, AT(group), "all events count, or none does", "open watch" },
        { 0, "pinned", NULL, OPTION_SET, AT(pinned), "never multiplex", "open watch" },
        { 0, "persistent", NULL, OPTION_SET, AT(persistent),
          "let the counters outlive this command", "open" },
        { 0, "role", "ROLE", OPTION_TEXT, AT(role), "foreground or monitor", "open watch" },
        { 0, "priority", "N", OPTION_NUMBER, AT(priority), "among monitors: higher yields later",
          "open watch" },
        { 0, "yield", "WHEN", OPTION_TEXT, AT(yield), "a monitor yields always, exclusive, never",
          "open watch" },
        { 0, "name", "TEXT", OPTION_TEXT, AT(name), "what the counters are called", "open watch" },
        { 'o', "output", "FILE", OPTION_TEXT, AT(output), "write the readings to FILE", "open" },

        { 0, "each", NULL, OPTION_SET, AT(each), "one row for each CPU or thread", "read" },
        { 'i', "interval", "TIME", OPTION_TIME, AT(interval_usec),
          "from one reading to the next (default: 1s)", "watch" },
        { 'n', "count", "N", OPTION_NUMBER, AT(count), "stop after N readings", "watch" },
};

static const OptionTable table = { .rows = rows, .n_rows = ELEMENTSOF(rows), .mixed = true };

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
                return refuse(why, REFUSAL_INVALID_ARGS, "--host and --machine are two places");
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
                        return refuse(why, REFUSAL_INVALID_ARGS, "--%s does not go with %s",
                                      rows[i].name, verb);
        return 0;
}

void ctl_options_print(void) {
        option_table_print(&table);
}
