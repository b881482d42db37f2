/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "client/ctl/counting.h"
#include "client/ctl/opening.h"
#include "client/ctl/runs.h"
#include "client/ctl/verbs.h"
#include "client/say.h"
#include "core/event-list.h"

/* open: counters that last as long as this command (persistent ones outlive it), and finally their
 * counts. */

/* ---- the result ---- */

static void file_close(FILE **f) {
        if (*f)
                (void) fclose(*f);
}

/* Before anything is counted: an hour's result must have somewhere to go. *ret stays NULL without
 * --output. */
static int output_open(const Ctl *c, FILE **ret, Refusal *why) {
        const char *file = c->options->output;

        if (!file)
                return 0;
        *ret = fopen(file, "we");
        return *ret ? 0 : refuse(why, CTL_E_FAILED, "%s: %s", file, strerror(errno));
}

static int print_to(Ctl *c, const Readings *readings, FILE *f, Refusal *why) {
        int r = readings_print(c, readings, f, why);

        if (fflush(f) != 0 && r == 0)
                r = refuse(why, CTL_E_FAILED, "%s: %s", c->options->output ?: "output",
                           strerror(errno));
        return r;
}

static void say_counters(const Readings *readings, char **events) {
        for (size_t i = 0; i < readings->n; i++)
                say_note("counter %" PRIu64 ": %s", path_number(readings->paths[i]), events[i]);
}

static int target_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        *(bool *) userdata = true;
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* Waits for a signal to end, or for the end of what is counted, or of the counters. */
static int stay(Ctl *c, const Opening *opening, const Counting *counting) {
        _cleanup_(sd_event_source_unrefp) sd_event_source *source = NULL;
        bool ended = false;
        int r = 0;

        if (opening->process.pidfd >= 0)
                r = sd_event_add_io(c->event, &source, opening->process.pidfd, EPOLLIN,
                                    target_ended, &ended);
        while (r >= 0 && !ended && !counting->ended && !counting->lost && c->signo == 0)
                r = sd_event_run(c->event, UINT64_MAX);
        c->signo = 0;
        return MIN(r, 0);
}

static int stay_and_print(Ctl *c, const Opening *opening, const Readings *readings, FILE *f,
                          Refusal *why) {
        _cleanup_(counting_done) Counting counting = COUNTING_NULL;
        int r = counting_start(&counting, c, readings, f, why);

        if (opening->pid > 0 && opening->process.pidfd < 0)
                counting_look(&counting);
        if (r == 0)
                r = stay(c, opening, &counting);
        if (r == 0)
                r = counting_settle(&counting);
        return r == 0 ? print_to(c, readings, f, why) : r;
}

static int print_numbers(Ctl *c, const Readings *readings, Refusal *why) {
        int r = 0;

        if (c->options->json)
                r = readings_print(c, readings, stdout, why);
        else
                for (size_t i = 0; i < readings->n; i++)
                        printf("%" PRIu64 "\n", path_number(readings->paths[i]));
        return r == 0 && fflush(stdout) != 0 ? ctl_refuse_unwritten(errno, why) : r;
}

/* Nobody would know of those whose numbers could not be printed. */
static int print_persistent(Ctl *c, const Readings *readings, Refusal *why) {
        int r = print_numbers(c, readings, why);

        for (size_t i = 0; i < readings->n && r != 0; i++)
                (void) ctl_call_method(c, readings->paths[i], PERFALLOC_COUNTER_INTERFACE, "Close",
                                       NULL, &(Refusal){}, "");
        return r;
}

static int open_and_stay(Ctl *c, char **events, Refusal *why) {
        _cleanup_(readings_done) Readings readings = READINGS_NULL;
        _cleanup_(opening_done) Opening opening = OPENING_NULL;
        _cleanup_(file_close) FILE *output = NULL;
        int r;

        r = output_open(c, &output, why);
        if (r == 0)
                r = opening_prepare(c, events, 0, &opening, why);
        if (r == 0)
                r = opening_open(c, &opening, &readings, why);
        if (r != 0)
                return r;
        if (c->options->persistent)
                return print_persistent(c, &readings, why);
        say_counters(&readings, opening.events);
        return stay_and_print(c, &opening, &readings, output ?: stdout, why);
}

/* On standard error by default, because standard output is COMMAND's. */
static int open_and_run(Ctl *c, char **events, Refusal *why) {
        _cleanup_(file_close) FILE *output = NULL;
        int r = output_open(c, &output, why);

        return r == 0 ? runs_count(c, events, output ?: stderr, why) : r;
}

static int options_check(const Ctl *c, Refusal *why) {
        const CtlOptions *o = c->options;

        if (o->command && (o->stopped || o->persistent))
                return refuse(why, CTL_E_USAGE,
                              "--stopped and --persistent cannot be used with a command");
        if (o->persistent && o->output)
                return refuse(why, CTL_E_USAGE,
                              "--persistent and --output exclude each other: the numbers of the "
                              "counters go to standard output");
        if (!o->command && (o->repeat > 0 || o->separator))
                return refuse(why, CTL_E_USAGE, "--repeat and --separator need a command");
        if (!o->command && c->n_words == 0)
                return refuse(why, CTL_E_USAGE, "open: missing argument (an event, or -- COMMAND)");
        return 0;
}

int verb_open(Ctl *c, Refusal *why) {
        _cleanup_(event_list_freep) char **events = NULL;
        int r = options_check(c, why);

        if (r == 0)
                r = opening_events(c, &events, why);
        if (r == 0)
                r = ctl_watch_signals(c);
        if (r != 0)
                return r;
        return c->options->command ? open_and_run(c, events, why) : open_and_stay(c, events, why);
}
