/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/pager.h"
#include "client/ctl/verbs.h"
#include "client/say.h"
#include "client/streams.h"
#include "core/number.h"

#define ANY SIZE_MAX

typedef enum VerbFlags {
        VERB_LOCAL = 1 << 0,   /* needs a descriptor, which cannot come from another host */
        VERB_PAGER = 1 << 1,   /* may print more than a screen */
        VERB_ALONE = 1 << 2,   /* asks nothing of the service */
        VERB_MACHINE = 1 << 3, /* prints for programs, also on a terminal */
} VerbFlags;

static const struct Verb {
        const char *name;
        const char *words; /* for --help */
        size_t n_min, n_max;
        unsigned flags;
        int (*run)(Ctl *c, Refusal *why);
        const char *help;
} verbs[] = {
        { "status", "", 0, 0, 0, verb_status, "show who holds and uses the counters (default)" },
        { "hold", "", 0, 0, 0, verb_hold, "hold counters until released; print a number" },
        { "release", "HOLD...|--tag=TEXT", 0, ANY, 0, verb_release, "release holds" },
        { "extend", "HOLD...|--tag=TEXT", 0, ANY, 0, verb_extend,
          "set how long holds last from now on" },
        { "holds", "", 0, 0, VERB_PAGER, verb_list, "list holds" },
        { "monitors", "", 0, 0, VERB_PAGER, verb_monitors, "list what yields to holds" },
        { "pmus", "", 0, 0, VERB_PAGER, verb_list, "list PMUs" },
        { "probe", "[PMU...]", 0, ANY, 0, verb_probe, "measure how many counters are free" },
        { "users", "", 0, 0, VERB_PAGER, verb_users, "list processes with open perf events" },
        { "events", "[PATTERN]", 0, 1, VERB_PAGER, verb_events, "list events" },
        { "encode", "EVENT...", 1, ANY, 0, verb_encode,
          "show how events are encoded for the kernel" },
        { "counters", "", 0, 0, VERB_PAGER, verb_list, "list counters" },
        { "open", "[EVENT...] [-- COMMAND...]", 0, ANY, 0, verb_open,
          "count until COMMAND ends, or until interrupted" },
        { "run", "COMMAND...", 0, 0, VERB_LOCAL, verb_run,
          "run COMMAND and open its perf events for it" },
        { "read", "COUNTER...", 1, ANY, 0, verb_read, "read counters" },
        { "start", "COUNTER...", 1, ANY, 0, verb_act, "start counters" },
        { "stop", "COUNTER...", 1, ANY, 0, verb_act, "stop counters" },
        { "reset", "COUNTER...", 1, ANY, 0, verb_act, "set counters to 0" },
        { "attach", "COUNTER... PID", 2, ANY, 0, verb_attach, "also count a process" },
        { "detach", "COUNTER... PID", 2, ANY, 0, verb_detach, "stop counting a process" },
        { "persist", "COUNTER...", 1, ANY, 0, verb_persist,
          "keep counters open after their program ends" },
        { "adopt", "COUNTER...", 1, ANY, 0, verb_adopt,
          "undo persist, and print what was counted" },
        { "close", "COUNTER...", 1, ANY, 0, verb_act, "close counters" },
        { "watch", "COUNTER...|EVENT...", 1, ANY, VERB_LOCAL, verb_watch,
          "show rates of counters or events" },
        { "samplers", "", 0, 0, VERB_PAGER, verb_list, "list samplers" },
        { "log", "", 0, 0, VERB_PAGER | VERB_ALONE, verb_log,
          "list past holds, denials and obstacles" },
        { "metrics", "", 0, 0, VERB_MACHINE, verb_metrics,
          "print metrics for Prometheus and others" },
};

static const struct Verb *verb_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (strcmp(verbs[i].name, name) == 0)
                        return &verbs[i];
        return NULL;
}

static void print_help(void) {
        printf("Usage: perfallocctl [OPTION]... [VERB] [ARGUMENT]...\n"
               "Show, hold and count with the performance counters of this machine.\n"
               "\n"
               "Verbs:\n");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                char synopsis[40];

                (void) snprintf(synopsis, sizeof(synopsis), "%s %s", verbs[i].name, verbs[i].words);
                printf("  %-31s %s\n", synopsis, verbs[i].help);
        }
        printf("\n");
        ctl_options_print(NULL);
        printf("\n"
               "Holds, counters and samplers are named by their number or D-Bus path.\n"
               "Exit status: 0, or that of COMMAND; 1 failed; 2 wrong command line; 3 not\n"
               "permitted; 4 counters in use; 5 no such object, event or process.\n"
               "See perfallocctl(1).\n");
}

static void print_verb_help(const struct Verb *verb) {
        printf("Usage: perfallocctl [OPTION]... %s%s%s\n"
               "%c%s.\n",
               verb->name, *verb->words ? " " : "", verb->words, toupper(*verb->help),
               verb->help + 1);
        ctl_options_print(verb->name);
        printf("\nSee perfallocctl --help for the options of all verbs, and perfallocctl(1).\n");
}

static int fail(int r, const Refusal *why) {
        if (r < 0)
                say_error("%s", strerror(-r));
        else if (*why->text)
                say_error("%s", why->text);
        return r < 0 ? CTL_E_FAILED : r;
}

/* ---- the command line ---- */

/* For open and run, what follows "--" is COMMAND; for other verbs these are words like others. */
static int words_join(CtlOptions *o, Refusal *why) {
        size_t n = 0;

        if (!o->command)
                return 0;
        if (o->n_words > 0 && (strcmp(o->words[0], "open") == 0 || strcmp(o->words[0], "run") == 0))
                return 0;
        while (o->command[n])
                n++;
        char **more = reallocarray(o->words, o->n_words + n + 1, sizeof(char *));
        if (!more)
                return -ENOMEM;
        memcpy(more + o->n_words, o->command, (n + 1) * sizeof(char *));
        o->words = more;
        o->n_words += n;
        o->command = NULL;
        return 0;
}

/* Checked before connecting, which may ask for a password. */
static int place_check(const CtlOptions *o, const struct Verb *verb, Refusal *why) {
        uint64_t number;

        if ((o->host || o->machine) && o->command)
                return refuse(
                        why, CTL_E_USAGE,
                        "a command runs on this host and cannot be counted by another host's or "
                        "container's service");
        if ((o->host || o->machine) && o->pidfd > 0)
                return refuse(
                        why, CTL_E_USAGE,
                        "--pidfd passes a descriptor of a process of this host, which another "
                        "host's or container's service cannot use");
        if ((o->host || o->machine) && o->cgroup)
                return refuse(
                        why, CTL_E_USAGE,
                        "--cgroup passes a descriptor of a directory of this host, which another "
                        "host's or container's service cannot use");
        if ((o->host || o->machine) && o->uid && number_parse(o->uid, &number) != 0)
                return refuse(why, CTL_E_USAGE,
                              "--uid: '%.64s' is a user of this host; give the number that they "
                              "have on the other one",
                              o->uid);
        if ((o->host || o->machine) && verb->flags & VERB_ALONE)
                return refuse(why, CTL_E_USAGE,
                              "%s reads the journal of this host; use: ssh HOST perfallocctl %s",
                              verb->name, verb->name);
        if (o->host && verb->flags & VERB_LOCAL)
                return refuse(
                        why, CTL_E_USAGE,
                        "%s needs a descriptor from the service, which a bus connection over ssh "
                        "does not carry; use: ssh %.64s perfallocctl %s ...",
                        verb->name, o->host, verb->name);
        return 0;
}

/* "list" as of perf(1) */
static const char *verb_synonym(const char *word) {
        return strcmp(word, "list") == 0 ? "events" : word;
}

static int verb_choose(CtlOptions *o, Ctl *c, const struct Verb **ret, Refusal *why) {
        static char *none[] = { NULL };
        const struct Verb *verb;
        int r = words_join(o, why);

        if (r < 0)
                return r;
        c->verb = o->n_words > 0 ? verb_synonym(o->words[0]) : "status";
        c->words = o->n_words > 0 ? o->words + 1 : none;
        c->n_words = o->n_words > 0 ? o->n_words - 1 : 0;
        verb = verb_find(c->verb);
        if (!verb)
                return refuse(why, CTL_E_USAGE, "unknown verb '%.64s' (see --help)", c->verb);
        if (c->n_words < verb->n_min)
                return refuse(why, CTL_E_USAGE, "%s: missing argument (usage: perfallocctl %s %s)",
                              verb->name, verb->name, verb->words);
        if (c->n_words > verb->n_max)
                return refuse(why, CTL_E_USAGE, "%s: unexpected argument '%.64s'", verb->name,
                              c->words[verb->n_max]);
        if (ctl_options_check(o, verb->name, why) != 0)
                return CTL_E_USAGE;
        r = place_check(o, verb, why);
        if (r != 0)
                return r;
        *ret = verb;
        return 0;
}

/* ---- all ---- */

static int run(Ctl *c, const struct Verb *verb, Refusal *why) {
        Pager pager = PAGER_NULL;
        int r;

        ctl_look_at_terminal(c);
        /* a decimal comma is neither JSON nor what scripts expect */
        if (!c->terminal || c->options->json || verb->flags & VERB_MACHINE)
                (void) setlocale(LC_NUMERIC, "C");
        r = verb->flags & VERB_ALONE ? 0 : ctl_open(c, why);
        if (r != 0)
                return r;
        if (verb->flags & VERB_PAGER && c->terminal && !c->options->no_pager)
                pager_open(&pager, c->signals);
        r = verb->run(c, why);
        if (fflush(stdout) != 0 && r == 0 && pager.pid == 0)
                r = ctl_refuse_unwritten(errno, why);
        pager_close(&pager);
        return r;
}

static int perfallocctl(CtlOptions *o) {
        _cleanup_(signals_done) Signals signals = SIGNALS_NULL;
        _cleanup_(ctl_close) Ctl c = { .options = o, .signals = &signals };
        const struct Verb *verb = NULL;
        Refusal why = REFUSAL_NULL;
        int r = verb_choose(o, &c, &verb, &why);

        if (r != 0)
                return fail(r, &why);
        say_quietly(o->quiet);
        signals_init(&signals);
        r = run(&c, verb, &why);
        if (r == CTL_E_INTERRUPTED) {
                ctl_close(&c);
                signal_die(c.signo);
        }
        if (r != 0)
                r = fail(r, &why);
        return c.status ?: r;
}

/* --help alone, --help with a verb, or "help VERB" */
static int help(const CtlOptions *o) {
        size_t i = o->n_words > 0 && strcmp(o->words[0], "help") == 0 ? 1 : 0;
        const struct Verb *verb;

        if (i >= o->n_words) {
                print_help();
                return 0;
        }
        verb = verb_find(verb_synonym(o->words[i]));
        if (!verb) {
                say_error("unknown verb '%.64s' (see --help)", o->words[i]);
                return CTL_E_USAGE;
        }
        print_verb_help(verb);
        return 0;
}

int main(int argc, char **argv) {
        _cleanup_(ctl_options_done) CtlOptions o = CTL_OPTIONS_NULL;
        Refusal why = REFUSAL_NULL;
        int r;

        if (streams_fill() < 0)
                return EXIT_FAILURE;
        (void) setlocale(LC_ALL, "");
        say_as("perfallocctl");
        r = ctl_options_parse(&o, argc, argv, &why);
        if (r != 0)
                return fail(r < 0 ? r : CTL_E_USAGE, &why);
        if (o.n_words > 0 && strcmp(o.words[0], "help") == 0)
                o.help = true;
        if (!o.help && !o.version)
                return perfallocctl(&o);
        if (o.help)
                r = help(&o);
        else
                printf("perfallocctl " PERFALLOC_VERSION "\n");
        return r != 0 ? r : fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
