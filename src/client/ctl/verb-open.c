/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "client/command.h"
#include "client/ctl/opening.h"
#include "client/ctl/verbs.h"
#include "client/ctl/words.h"
#include "client/say.h"
#include "core/clock.h"

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

/* ---- with COMMAND ---- */

/* Runs COMMAND and prints its counts, on standard error by default, because standard output is
 * COMMAND's. */
static int run(Ctl *c, Command *command, const Readings *readings, FILE *output, Refusal *why) {
        _cleanup_free_ char *span = NULL;
        uint64_t start = now_usec(CLOCK_MONOTONIC);
        int r = command_run(command, c->event, c->signals);

        if (r < 0)
                return r;
        if (r > 0) {
                c->status = command->status;
                return refuse(why, CTL_E_FAILED, "cannot run %s: %s", c->options->command[0],
                              strerror(r));
        }
        while (r >= 0 && !command->ended)
                r = sd_event_run(c->event, UINT64_MAX);
        if (r < 0)
                return r;
        span = words_span(now_usec(CLOCK_MONOTONIC) - start);
        c->status = command->status;
        r = print_to(c, readings, output ?: stderr, why);
        if (span && !c->options->json)
                say_note("%s took %s", c->options->command[0], span);
        c->signo = command->signo;
        return r == 0 && c->signo > 0 ? CTL_E_INTERRUPTED : r;
}

/* COMMAND waits, in its own process, until it is counted. */
static int open_and_run(Ctl *c, Refusal *why) {
        _cleanup_(readings_done) Readings readings = READINGS_NULL;
        _cleanup_(opening_done) Opening opening = OPENING_NULL;
        _cleanup_(command_done) Command command = COMMAND_NULL;
        _cleanup_(file_close) FILE *output = NULL;
        int r;

        r = output_open(c, &output, why);
        if (r == 0)
                r = command_prepare(&command, c->options->command, NULL, c->signals);
        if (r == 0)
                r = opening_prepare(c, c->words, command.pid, &opening, why);
        if (r == 0)
                r = opening_open(c, &opening, &readings, why);
        return r == 0 ? run(c, &command, &readings, output, why) : r;
}

/* ---- without ---- */

static int target_ended(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        *(bool *) userdata = true;
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* Waits for a signal to end, or for the end of what is counted. */
static int stay(Ctl *c, const Opening *opening) {
        _cleanup_(sd_event_source_unrefp) sd_event_source *source = NULL;
        bool ended = false;
        int r = 0;

        if (opening->pidfd >= 0)
                r = sd_event_add_io(c->event, &source, opening->pidfd, EPOLLIN, target_ended,
                                    &ended);
        if (r >= 0)
                r = ctl_run(c, &ended);
        c->signo = 0;
        return r == CTL_E_INTERRUPTED ? 0 : r;
}

static int print_numbers(Ctl *c, const Readings *readings, Refusal *why) {
        if (c->options->json)
                return readings_print(c, readings, stdout, why);
        for (size_t i = 0; i < readings->n; i++)
                printf("%" PRIu64 "\n", path_number(readings->paths[i]));
        return 0;
}

static int open_and_stay(Ctl *c, Refusal *why) {
        _cleanup_(readings_done) Readings readings = READINGS_NULL;
        _cleanup_(opening_done) Opening opening = OPENING_NULL;
        _cleanup_(file_close) FILE *output = NULL;
        int r;

        r = output_open(c, &output, why);
        if (r == 0)
                r = opening_prepare(c, c->words, 0, &opening, why);
        if (r == 0)
                r = opening_open(c, &opening, &readings, why);
        if (r != 0)
                return r;
        if (c->options->persistent)
                return print_numbers(c, &readings, why);
        say_counters(&readings, c->words);
        r = stay(c, &opening);
        return r == 0 ? print_to(c, &readings, output ?: stdout, why) : r;
}

int verb_open(Ctl *c, Refusal *why) {
        int r;

        if (c->options->command && (c->options->stopped || c->options->persistent))
                return refuse(why, CTL_E_USAGE,
                              "--stopped and --persistent do not go with a command");
        r = ctl_watch_signals(c);
        if (r != 0)
                return r;
        return c->options->command ? open_and_run(c, why) : open_and_stay(c, why);
}
