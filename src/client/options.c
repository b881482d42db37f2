/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/timespan.h"

typedef enum OptionKind {
        OPTION_SET,    /* bool, becomes true */
        OPTION_CLEAR,  /* bool, becomes false */
        OPTION_TEXT,   /* const char * */
        OPTION_NUMBER, /* uint32_t from 1 */
        OPTION_TIME,   /* uint64_t, µs */
        OPTION_PMUS,   /* adds one to pmus */
} OptionKind;

static const struct OptionRow {
        char letter; /* 0: none */
        const char *name;
        const char *argument; /* NULL: takes none */
        OptionKind kind;
        size_t offset;
        const char *help;
} rows[] = {
        { 'D', "foreground", NULL, OPTION_CLEAR, offsetof(Options, background),
          "run in the foreground (the default)" },
        { 'd', "daemon", NULL, OPTION_SET, offsetof(Options, background),
          "run in the background, after the counters are held" },
        { 'f', "lock-file", "FILE", OPTION_TEXT, offsetof(Options, lock_file),
          "also take PCP's lock on FILE, for pmdaperfevent" },
        { 'h', "help", NULL, OPTION_SET, offsetof(Options, help), "display this help and exit" },
        { 'v', "version", NULL, OPTION_SET, offsetof(Options, version),
          "display the version and exit" },
        { 0, "exclusive", NULL, OPTION_SET, offsetof(Options, exclusive),
          "let nobody else hold them at the same time" },
        { 0, "counters", "N", OPTION_NUMBER, offsetof(Options, counters),
          "hold N counters on each CPU (default: all)" },
        { 0, "cpus", "LIST", OPTION_TEXT, offsetof(Options, cpus),
          "hold them on these CPUs, as in 0-3,8 (default: all)" },
        { 0, "pmu", "NAME", OPTION_PMUS, 0,
          "hold those of this PMU; may be repeated (default: the core PMUs)" },
        { 0, "wait", "TIME", OPTION_TIME, offsetof(Options, wait_usec),
          "wait that long for other holders (5s, 2min, infinity; default: not)" },
        { 0, "best-effort", NULL, OPTION_SET, offsetof(Options, best_effort),
          "go on even if somebody does not give way" },
        { 0, "reason", "TEXT", OPTION_TEXT, offsetof(Options, reason),
          "what for, for those who have to consent" },
        { 0, "quiet", NULL, OPTION_SET, offsetof(Options, quiet), "say nothing but errors" },
};

#define NO_LETTER 256 /* getopt's value of a row without one, plus its index */

static int refuse_value(const struct OptionRow *row, const char *text, const char *what,
                        Refusal *why) {
        return refuse(why, REFUSAL_INVALID_ARGS, "--%s: %s: '%.64s'", row->name, what, text);
}

static int number_parse(const struct OptionRow *row, const char *text, uint32_t *ret,
                        Refusal *why) {
        uint64_t n = 0;

        if (!*text || text[strspn(text, "0123456789")])
                return refuse_value(row, text, "not a number", why);
        for (const char *p = text; *p && n <= UINT32_MAX; p++)
                n = n * 10 + (uint64_t) (*p - '0');
        if (n == 0 || n > UINT32_MAX)
                return refuse_value(row, text, "not a number of counters", why);
        *ret = (uint32_t) n;
        return 0;
}

static int pmus_add(Options *o, char *name) {
        char **pmus = reallocarray(o->pmus, o->n_pmus + 2, sizeof(char *));

        if (!pmus)
                return -ENOMEM;
        o->pmus = pmus;
        o->pmus[o->n_pmus++] = name;
        o->pmus[o->n_pmus] = NULL;
        return 0;
}

static int option_apply(Options *o, const struct OptionRow *row, char *argument, Refusal *why) {
        void *field = (char *) o + row->offset;

        switch (row->kind) {
        case OPTION_SET:
        case OPTION_CLEAR:
                *(bool *) field = row->kind == OPTION_SET;
                return 0;
        case OPTION_TEXT:
                *(const char **) field = argument;
                return 0;
        case OPTION_NUMBER:
                return number_parse(row, argument, field, why);
        case OPTION_TIME:
                if (timespan_parse(argument, field) < 0)
                        return refuse_value(row, argument, "no time like 5s, 2min, infinity", why);
                return 0;
        case OPTION_PMUS:
                return pmus_add(o, argument);
        }
        return 0;
}

typedef struct GetoptTables {
        char letters[3 * ELEMENTSOF(rows) + 2];
        struct option names[ELEMENTSOF(rows) + 1];
} GetoptTables;

static void getopt_tables_fill(GetoptTables *t) {
        /* '+': stop at the first word that is no option; ':': tell a missing argument from an
         * unknown option */
        char *letter = stpcpy(t->letters, "+:");

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                t->names[i] = (struct option){
                        .name = rows[i].name,
                        .has_arg = rows[i].argument ? required_argument : no_argument,
                        .val = rows[i].letter ?: NO_LETTER + (int) i,
                };
                if (!rows[i].letter)
                        continue;
                *letter++ = rows[i].letter;
                if (rows[i].argument)
                        *letter++ = ':';
        }
        *letter = '\0';
        t->names[ELEMENTSOF(rows)] = (struct option){};
}

static const struct OptionRow *row_find(int value) {
        if (value >= NO_LETTER)
                return &rows[value - NO_LETTER];
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (rows[i].letter && rows[i].letter == value)
                        return &rows[i];
        return NULL;
}

/* getopt(3) leaves the word in argv for a long option, the letter in optopt for a short one. */
static int refuse_option(int value, char **argv, Refusal *why) {
        const struct OptionRow *row = row_find(optopt);
        const char *word = argv[optind - 1];
        char letter[] = { '-', (char) optopt, '\0' };

        if (value == ':')
                return refuse(why, REFUSAL_INVALID_ARGS, "--%s needs an argument: %s", row->name,
                              row->argument);
        if (row)
                return refuse(why, REFUSAL_INVALID_ARGS, "--%s takes no argument", row->name);
        return refuse(why, REFUSAL_INVALID_ARGS, "unknown or ambiguous option '%.64s' (see --help)",
                      optopt ? letter : word);
}

int options_parse(Options *ret, int argc, char **argv, Refusal *why) {
        _cleanup_(options_done) Options o = OPTIONS_NULL;
        GetoptTables tables;
        int value, r;

        getopt_tables_fill(&tables);
        opterr = 0;
        optind = 0; /* glibc: start anew */
        while ((value = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
                const struct OptionRow *row = row_find(value);

                r = row ? option_apply(&o, row, optarg, why) : refuse_option(value, argv, why);
                if (r != 0)
                        return r;
        }
        if (optind < argc)
                o.command = argv + optind;
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
               "Hold this machine's performance counters: monitors give way, and carry on\n"
               "afterwards. Runs COMMAND once they are held, or stays until it is told to end.\n"
               "\n");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "--%s%s%s", rows[i].name,
                                rows[i].argument ? "=" : "",
                                rows[i].argument ? rows[i].argument : "");
                printf("  %c%c%c %-19s %s\n", rows[i].letter ? '-' : ' ', rows[i].letter ?: ' ',
                       rows[i].letter ? ',' : ' ', name, rows[i].help);
        }
        printf("\n"
               "The exit status is that of COMMAND, 126 or 127 when it cannot be run, and 1 when\n"
               "the counters cannot be held. See perfalloc(1).\n");
}
