/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/pager.h"
#include "client/ctl/verbs.h"
#include "client/say.h"

#define ANY SIZE_MAX

typedef enum VerbFlags {
        VERB_LOCAL = 1 << 0, /* needs a descriptor, which cannot come from another host */
        VERB_PAGER = 1 << 1, /* may print more than a screen */
} VerbFlags;

static const struct Verb {
        const char *name;
        const char *words; /* for --help */
        size_t n_min, n_max;
        unsigned flags;
        int (*run)(Ctl *c, Refusal *why);
        const char *help;
} verbs[] = {
        { "status", "", 0, 0, VERB_PAGER, verb_status,
          "who has the counters, who waits, who has given way (the default)" },
        { "hold", "", 0, 0, 0, verb_hold,
          "hold counters until they are released; prints a number" },
        { "release", "HOLD...|--tag=TEXT", 0, ANY, 0, verb_release, "give them back" },
        { "extend", "HOLD...|--tag=TEXT", 0, ANY, 0, verb_extend,
          "let holds last for --lifetime from now" },
        { "holds", "", 0, 0, VERB_PAGER, verb_list, "list holds" },
        { "monitors", "", 0, 0, VERB_PAGER, verb_monitors, "list what gives way to holds" },
        { "pmus", "", 0, 0, VERB_PAGER, verb_list, "list PMUs" },
        { "probe", "[PMU...]", 0, ANY, 0, verb_probe, "measure how many counters are free" },
        { "users", "", 0, 0, VERB_PAGER, verb_users, "list processes that have perf events open" },
        { "events", "[PATTERN]", 0, 1, VERB_PAGER, verb_events, "list events" },
        { "encode", "EVENT...", 1, ANY, 0, verb_encode, "say what events are to the kernel" },
        { "counters", "", 0, 0, VERB_PAGER, verb_list, "list counters" },
        { "open", "EVENT... [-- COMMAND...]", 1, ANY, 0, verb_open,
          "count, until interrupted or COMMAND ends" },
        { "read", "COUNTER...", 1, ANY, 0, verb_read, "read counters" },
        { "start", "COUNTER...", 1, ANY, 0, verb_act, "let counters count" },
        { "stop", "COUNTER...", 1, ANY, 0, verb_act, "stop counters" },
        { "reset", "COUNTER...", 1, ANY, 0, verb_act, "set counters to 0" },
        { "attach", "COUNTER PID", 2, 2, 0, verb_attach, "count a process too" },
        { "detach", "COUNTER PID", 2, 2, 0, verb_detach, "count it no more" },
        { "persist", "COUNTER...", 1, ANY, 0, verb_persist,
          "let counters outlive who opened them" },
        { "adopt", "COUNTER...", 1, ANY, 0, verb_adopt,
          "end that: counters go with their last user; reads them" },
        { "close", "COUNTER...", 1, ANY, 0, verb_act, "end counters" },
        { "watch", "COUNTER...|EVENT...", 1, ANY, VERB_LOCAL, verb_watch, "show rates" },
        { "samplers", "", 0, 0, VERB_PAGER, verb_list, "list samplers" },
        { "metrics", "", 0, 0, 0, verb_metrics, "print everything as OpenMetrics text" },
};

static const struct Verb *verb_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (strcmp(verbs[i].name, name) == 0)
                        return &verbs[i];
        return NULL;
}

static void print_help(void) {
        printf("Usage: perfallocctl [OPTION]... [VERB] [WORD]...\n"
               "Performance counters of this machine: see, hold, count.\n"
               "\n");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                char synopsis[40];

                (void) snprintf(synopsis, sizeof(synopsis), "%s %s", verbs[i].name, verbs[i].words);
                printf("  %-29s %s\n", synopsis, verbs[i].help);
        }
        printf("\n");
        ctl_options_print();
        printf("\n"
               "Objects are named by their number or their D-Bus path. The exit status is 0, that "
               "of\n"
               "COMMAND, or: 1 it failed, 2 the command line is wrong, 3 not permitted, 4 the "
               "counters\n"
               "are taken, 5 there is no such thing. See perfallocctl(1).\n");
}

static int fail(int r, const Refusal *why) {
        if (r < 0)
                say_error("%s", strerror(-r));
        else if (*why->text)
                say_error("%s", why->text);
        return r < 0 ? CTL_E_FAILED : r;
}

/* ---- the command line ---- */

/* For open, what follows "--" is COMMAND; for other verbs these are words like others. */
static int words_join(CtlOptions *o, Refusal *why) {
        size_t n = 0;

        if (!o->command)
                return 0;
        if (o->n_words > 0 && strcmp(o->words[0], "open") == 0)
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
        if ((o->host || o->machine) && o->command)
                return refuse(why, CTL_E_USAGE,
                              "a command runs here, and cannot be counted on another host or in a "
                              "container");
        if ((o->host || o->machine) && o->pidfd > 0)
                return refuse(why, CTL_E_USAGE,
                              "--pidfd hands over a process that is here, not on another host or "
                              "in a container");
        if ((o->host || o->machine) && o->cgroup)
                return refuse(
                        why, CTL_E_USAGE,
                        "--cgroup hands over a descriptor of a directory that is here, not on "
                        "another host or in a container");
        if (o->host && verb->flags & VERB_LOCAL)
                return refuse(
                        why, CTL_E_USAGE,
                        "%s needs a descriptor from the service, which a bus over ssh does not "
                        "carry; for another host: ssh %.64s perfallocctl %s ...",
                        verb->name, o->host, verb->name);
        return 0;
}

static int verb_choose(CtlOptions *o, Ctl *c, const struct Verb **ret, Refusal *why) {
        static char *none[] = { NULL };
        const struct Verb *verb;
        int r = words_join(o, why);

        if (r < 0)
                return r;
        c->verb = o->n_words > 0 ? o->words[0] : "status";
        c->words = o->n_words > 0 ? o->words + 1 : none;
        c->n_words = o->n_words > 0 ? o->n_words - 1 : 0;
        verb = verb_find(c->verb);
        if (!verb)
                return refuse(why, CTL_E_USAGE, "unknown verb '%.64s' (see --help)", c->verb);
        if (c->n_words < verb->n_min)
                return refuse(why, CTL_E_USAGE, "%s needs more: %s", verb->name, verb->words);
        if (c->n_words > verb->n_max)
                return refuse(why, CTL_E_USAGE, "%s: '%.64s' is too much", verb->name,
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

        c->terminal = isatty(STDOUT_FILENO);
        r = ctl_open(c, why);
        if (r != 0)
                return r;
        if (verb->flags & VERB_PAGER && c->terminal && !c->options->no_pager)
                pager_open(&pager, c->signals);
        r = verb->run(c, why);
        if (fflush(stdout) != 0 && r == 0 && pager.pid == 0)
                r = refuse(why, CTL_E_FAILED, "standard output: %s", strerror(errno));
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

int main(int argc, char **argv) {
        _cleanup_(ctl_options_done) CtlOptions o = CTL_OPTIONS_NULL;
        Refusal why = REFUSAL_NULL;
        int r;

        (void) setlocale(LC_ALL, "");
        say_as("perfallocctl");
        r = ctl_options_parse(&o, argc, argv, &why);
        if (r != 0)
                return fail(r < 0 ? r : CTL_E_USAGE, &why);
        if (!o.help && !o.version)
                return perfallocctl(&o);
        if (o.help)
                print_help();
        else
                printf("perfallocctl " PERFALLOC_VERSION "\n");
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
