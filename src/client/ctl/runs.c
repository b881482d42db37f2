/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runs.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "client/command.h"
#include "client/ctl/counting.h"
#include "client/ctl/opening.h"
#include "client/ctl/report.h"
#include "core/clock.h"
#include "core/event-list.h"

typedef struct Runs {
        Ctl *c;
        char **named;     /* what is to be opened; empty: the usual events */
        char **events;    /* what is opened, once that has succeeded */
        char **user_only; /* owned: the same after a fallback */
        Report report;
        FILE *output;
        int signo; /* what has killed the command; c->signo would end the calls that read it */
} Runs;

static void runs_done(Runs *r) {
        report_done(&r->report);
        r->user_only = event_list_free(r->user_only);
}

/* ---- events ---- */

/* What is counted if no event is named: as much of it as the machine has. */
static char *const all_events[] = {
        (char *) "task-clock",  (char *) "context-switches", (char *) "cpu-migrations",
        (char *) "page-faults", (char *) "cycles",           (char *) "instructions",
        (char *) "branches",    (char *) "branch-misses",    NULL,
};
static char *const fewer_events[] = {
        (char *) "task-clock",
        (char *) "context-switches",
        (char *) "cpu-migrations",
        (char *) "page-faults",
        (char *) "cycles",
        (char *) "instructions",
        NULL,
};
static char *const software_events[] = {
        (char *) "task-clock",
        (char *) "context-switches",
        (char *) "cpu-migrations",
        (char *) "page-faults",
        NULL,
};
static char *const *const defaults[] = { all_events, fewer_events, software_events };

static int open_default(Ctl *c, Opening *o, Readings *ret, Refusal *why) {
        int r = CTL_E_UNKNOWN;

        for (size_t i = 0; i < ELEMENTSOF(defaults) && r == CTL_E_UNKNOWN; i++) {
                o->events = (char **) defaults[i];
                r = opening_open(c, o, ret, why);
        }
        return r;
}

static int open_events(Runs *runs, Opening *o, Readings *ret, Refusal *why) {
        Ctl *c = runs->c;
        int r;

        if (runs->events || *runs->named)
                r = opening_open(c, o, ret, why);
        else
                r = open_default(c, o, ret, why);
        if (r != 0)
                return r;
        /* later runs count the same, and say nothing of it */
        if (o->user_only) {
                runs->user_only = TAKE_PTR(o->user_only);
                o->events = runs->user_only;
        }
        if (!runs->events)
                r = report_init(&runs->report, c->options->command[0], o->events);
        runs->events = o->events;
        return r;
}

/* ---- values ---- */

static ReportQuality quality_of(const char *word) {
        return strcmp(word, "exact") == 0    ? REPORT_EXACT
               : strcmp(word, "scaled") == 0 ? REPORT_SCALED
                                             : REPORT_NOT_COUNTED;
}

static int values_take(Runs *runs, const Readings *readings, Refusal *why) {
        _cleanup_free_ ReadingValue *values = calloc(readings->n + 1, sizeof(ReadingValue));
        int r;

        if (!values)
                return -ENOMEM;
        r = readings_read(runs->c, readings, values, why);
        for (size_t i = 0; i < readings->n && r == 0; i++) {
                const ReportRun run = {
                        .value = (double) values[i].estimate,
                        .enabled_nsec = values[i].enabled_nsec,
                        .running_nsec = values[i].running_nsec,
                        .quality = quality_of(values[i].quality),
                };

                report_add(&runs->report, i, &run);
        }
        return r;
}

/* The next run opens its own. */
static int counters_close(Ctl *c, const Readings *readings, Refusal *why) {
        int r = 0;

        for (size_t i = 0; i < readings->n && r == 0; i++)
                r = ctl_call_method(c, readings->paths[i], PERFALLOC_COUNTER_INTERFACE, "Close",
                                    NULL, why, "");
        return r;
}

/* ---- one run ---- */

static double seconds(const struct timeval *t) {
        return (double) t->tv_sec + (double) t->tv_usec / 1e6;
}

static int command_run_to_end(Runs *runs, Command *command, Refusal *why) {
        Ctl *c = runs->c;
        int r = command_run(command, c->event, c->signals);

        if (r > 0) {
                c->status = command->status;
                return refuse(why, CTL_E_FAILED, "cannot run %s: %s", c->options->command[0],
                              strerror(r));
        }
        while (r >= 0 && !command->ended)
                r = sd_event_run(c->event, UINT64_MAX);
        c->status = command->status;
        runs->signo = command->signo;
        return MIN(r, 0);
}

/* The command's end is the end of forwarding: what reads its counters is interrupted as before. */
static int command_wait(Runs *runs, Command *command, Refusal *why) {
        int r = command_run_to_end(runs, command, why), q = ctl_watch_signals(runs->c);

        return r != 0 ? r : q;
}

static int command_time(Runs *runs, Command *command, Refusal *why) {
        struct rusage before, after;
        uint64_t start;
        int r;

        (void) getrusage(RUSAGE_CHILDREN, &before);
        start = now_usec(CLOCK_MONOTONIC);
        r = command_wait(runs, command, why);
        if (r != 0)
                return r;
        (void) getrusage(RUSAGE_CHILDREN, &after);
        report_add_times(&runs->report, (double) (now_usec(CLOCK_MONOTONIC) - start) / 1e6,
                         seconds(&after.ru_utime) - seconds(&before.ru_utime),
                         seconds(&after.ru_stime) - seconds(&before.ru_stime));
        return 0;
}

/* What it has counted when the service stops is printed at once. */
static int command_count(Runs *runs, Command *command, const Readings *readings, Refusal *why) {
        _cleanup_(counting_done) Counting counting = COUNTING_NULL;
        int r = counting_start(&counting, runs->c, readings, runs->output, why);

        if (r == 0)
                r = command_time(runs, command, why);
        return r == 0 ? counting_settle(&counting) : r;
}

/* COMMAND waits, in its own process, until it is counted. */
static int run_once(Runs *runs, Refusal *why) {
        _cleanup_(readings_done) Readings readings = READINGS_NULL;
        _cleanup_(opening_done) Opening opening = OPENING_NULL;
        _cleanup_(command_done) Command command = COMMAND_NULL;
        Ctl *c = runs->c;
        int r;

        r = command_prepare(&command, c->options->command, NULL, c->signals);
        if (r == 0)
                r = opening_prepare(c, runs->events ?: runs->named, command.pid, &opening, why);
        if (r == 0)
                r = open_events(runs, &opening, &readings, why);
        if (r == 0)
                r = command_count(runs, &command, &readings, why);
        if (r == 0)
                r = values_take(runs, &readings, why);
        return r == 0 ? counters_close(c, &readings, why) : r;
}

/* ---- all ---- */

static int report_write(const Runs *runs, FILE *f, Refusal *why) {
        const CtlOptions *o = runs->c->options;
        int r = 0;

        if (o->json)
                r = report_print_json(&runs->report, f);
        else if (o->separator)
                report_print_fields(&runs->report, o->separator, f);
        else
                r = report_print(&runs->report, f);
        if (fflush(f) != 0 && r == 0)
                r = refuse(why, CTL_E_FAILED, "%s: %s", o->output ?: "output", strerror(errno));
        return r;
}

int runs_count(Ctl *c, char **events, FILE *output, Refusal *why) {
        _cleanup_(runs_done) Runs runs = { .c = c, .named = events, .output = output };
        uint32_t n = c->options->repeat ?: 1;
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0 && runs.signo == 0 && c->signo == 0; i++)
                r = run_once(&runs, why);
        if (r == 0)
                r = report_write(&runs, output, why);
        if (runs.signo > 0)
                c->signo = runs.signo;
        return r == 0 && c->signo > 0 ? CTL_E_INTERRUPTED : r;
}
