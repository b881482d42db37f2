/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "client/command.h"
#include "client/daemon.h"
#include "client/hold-client.h"
#include "client/hold-words.h"
#include "client/launch.h"
#include "client/lifetime.h"
#include "client/lockfile.h"
#include "client/options.h"
#include "client/say.h"
#include "client/streams.h"
#include "core/timespan.h"

/* How perfalloc ends: by a signal, as COMMAND did or as requested, else with a status. */
typedef struct Ending {
        int status;
        int signo;
} Ending;

static const Ending failure = { .status = EXIT_FAILURE };

static Ending fail(const char *what, int r) {
        say_error("%s: %s", what, strerror(r < 0 ? -r : r));
        return failure;
}

/* ---- with COMMAND ---- */

typedef struct Run {
        const Options *options;
        bool begun; /* COMMAND runs */
        bool over;  /* the hold has ended */
        int signo;
} Run;

static void run_unheld(void *userdata, const char *why) {
        Run *run = userdata;
        const char *command = run->options->command[0];

        run->over = true;
        if (run->begun)
                say_error("warning: the counters are no longer held: %s; %s continues", why,
                          command);
        else
                say_error("the counters are no longer held: %s; %s is not run", why, command);
}

static int run_interrupted(void *userdata, const struct signalfd_siginfo *info) {
        Run *run = userdata;

        run->signo = (int) info->ssi_signo;
        return 0;
}

/* Until run_unheld() has said why. */
static int run_await_end(HoldClient *c, Run *run) {
        int r = signals_watch(c->signals, c->event, SIGNALS_END, run_interrupted, run);

        while (r >= 0 && !run->over && run->signo == 0)
                r = sd_event_run(c->event, UINT64_MAX);
        return MIN(r, 0);
}

static Ending run_prepared(HoldClient *c, const Options *o, Run *run, Command *command) {
        int r;

        run->begun = true;
        r = command_run(command, c->event, c->signals);
        if (r > 0)
                say_error("cannot run %s: %s", o->command[0], strerror(r));
        while (r >= 0 && !command->ended)
                r = sd_event_run(c->event, UINT64_MAX);
        return r < 0 ? fail("cannot run or watch the command", r)
                     : (Ending){ .status = command->status, .signo = command->signo };
}

static Ending run(HoldClient *c, const Options *o) {
        Run run = { .options = o };
        _cleanup_(command_done) Command command = COMMAND_NULL;
        _cleanup_(launch_done) Launch launch = { .mode = o->broker,
                                                 .allow = o->allow ?: LAUNCH_ALLOW,
                                                 .paranoid = o->paranoid,
                                                 .command = o->command,
                                                 .bus = c->bus,
                                                 .event = c->event,
                                                 .signals = c->signals,
                                                 .over = &run.over,
                                                 .prover = PROVER_CLIENT_NULL };
        Refusal why = REFUSAL_NULL;
        int r;

        r = hold_client_watch(c, run_unheld, &run);
        if (r < 0)
                return fail("cannot watch the hold", r);
        r = launch_prepare(&launch, &command, &why);
        if (r == LAUNCH_E_INTERRUPTED)
                return (Ending){ .signo = launch.signo };
        if (r >= 0 && hold_client_has_ended(c))
                r = run_await_end(c, &run);
        if (run.signo > 0)
                return (Ending){ .signo = run.signo };
        if (run.over)
                return failure;
        return r < 0 ? fail("cannot run the command", r) : run_prepared(c, o, &run, &command);
}

/* ---- without ---- */

typedef struct Stay {
        bool over;
        Ending ending;
} Stay;

static int stay_no_longer(void *userdata, const struct signalfd_siginfo *info) {
        Stay *s = userdata;

        *s = (Stay){ .over = true, .ending = { .status = EXIT_SUCCESS } };
        return 0;
}

static void stay_in_vain(void *userdata, const char *why) {
        Stay *s = userdata;

        say_error("the counters are no longer held: %s", why);
        *s = (Stay){ .over = true, .ending = failure };
}

static Ending stay(HoldClient *c) {
        Stay s = { .over = false };
        int r;

        r = hold_client_watch(c, stay_in_vain, &s);
        if (r >= 0)
                r = signals_watch(c->signals, c->event, SIGNALS_END, stay_no_longer, &s);
        while (r >= 0 && !s.over)
                r = sd_event_run(c->event, UINT64_MAX);
        return r < 0 ? fail("cannot watch the hold", r) : s.ending;
}

/* ---- both ---- */

static void say_granted(const HoldClient *c) {
        _cleanup_free_ char *words = hold_words_grant(&c->hold, c->confirmed, c->latency_usec);

        if (words)
                say_note("%s", words);
        if (!hold_is_empty(&c->hold))
                lifetime_say_cut(&c->hold, object_number(&c->hold, "RequestTimestamp"),
                                 TIMESPAN_INFINITY);
        for (char **pmu = object_value(&c->hold, "Pmus")->texts; pmu && *pmu; pmu++) {
                _cleanup_free_ char *kept = hold_client_kernel(c, *pmu);

                if (kept)
                        say_note("%s", kept);
        }
}

static Ending use(HoldClient *c, const Options *o, int report) {
        Ending ending;
        int r;

        if (hold_is_empty(&c->hold) && o->require) {
                say_error(HOLD_WORDS_EMPTY);
                hold_client_release(c);
                return failure;
        }
        if (!o->quiet)
                say_granted(c);
        if (report >= 0) {
                r = daemon_detach(report);
                if (r < 0)
                        return fail("cannot go into the background", r);
        }
        ending = o->command ? run(c, o) : stay(c);
        hold_client_release(c);
        return ending;
}

static Ending hold(const Options *o, Signals *signals, int report) {
        _cleanup_(hold_client_close) HoldClient c = HOLD_CLIENT_NULL;
        int r;

        r = hold_client_open(&c, o, signals);
        if (r == 0)
                r = hold_client_take(&c);
        switch (r) {
        case HOLD_CLIENT_GRANTED:
                return use(&c, o, report);
        case HOLD_CLIENT_E_INTERRUPTED:
                return (Ending){ .signo = c.signo };
        case HOLD_CLIENT_E_FAILED:
                say_error("cannot hold the counters: %s", c.why.text);
                return failure;
        default:
                return fail("cannot hold the counters", r);
        }
}

static Ending perfalloc(const Options *o, Signals *signals, int report) {
        _cleanup_close_ int lock = -1;
        Refusal why;
        int r;

        if (o->lock_file) {
                r = lockfile_take(o->lock_file, &lock, &why);
                if (r < 0)
                        return fail("cannot take the lock", r);
                if (r > 0) {
                        say_error("%s", why.text);
                        return failure;
                }
        }
        return hold(o, signals, report);
}

static int print_and_exit(const Options *o) {
        if (o->help)
                options_print_help();
        else
                printf("perfalloc " PERFALLOC_VERSION "\n");
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
        _cleanup_(options_done) Options o = OPTIONS_NULL;
        _cleanup_(signals_done) Signals signals = SIGNALS_NULL;
        int report = -1, r;
        Refusal why;
        Ending ending;

        if (streams_fill() < 0)
                return EXIT_FAILURE;
        r = options_parse(&o, argc, argv, &why);
        if (r > 0)
                say_error("%s", why.text);
        if (r != 0)
                return r < 0 ? fail("cannot read the options", r).status : EXIT_FAILURE;
        if (o.help || o.version)
                return print_and_exit(&o);
        say_quietly(o.quiet);

        if (o.background && !o.command) {
                r = daemon_fork(&report);
                if (r < 0)
                        return fail("cannot go into the background", r).status;
        }
        signals_init(&signals);
        ending = perfalloc(&o, &signals, report);
        if (ending.signo > 0)
                signal_die(ending.signo);
        return ending.status;
}
