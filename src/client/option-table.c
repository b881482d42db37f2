/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "option-table.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/timespan.h"

#define NO_LETTER 256 /* getopt's value of a row without one, plus its index */
#define WORD      1   /* getopt's value of what is no option */

static int refuse_value(const OptionRow *row, const char *text, const char *what, Refusal *why) {
        return refuse(why, REFUSAL_INVALID_ARGS, "--%s: %s: '%.64s'", row->name, what, text);
}

static int number_parse(const OptionRow *row, const char *text, uint32_t *ret, Refusal *why) {
        uint64_t n = 0;

        if (!*text || text[strspn(text, "0123456789")])
                return refuse_value(row, text, "not a number", why);
        for (const char *p = text; *p && n <= UINT32_MAX; p++)
                n = n * 10 + (uint64_t) (*p - '0');
        if (n > UINT32_MAX || (n == 0 && row->kind == OPTION_POSITIVE))
                return refuse_value(row, text,
                                    row->kind == OPTION_POSITIVE
                                            ? "not a number from 1 to 4294967295"
                                            : "not a number from 0 to 4294967295",
                                    why);
        *ret = (uint32_t) n;
        return 0;
}

static int time_parse(const OptionRow *row, const char *text, uint64_t *ret, Refusal *why) {
        if (timespan_parse(text, ret) < 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "--%s: invalid time '%.64s' (for example 5s, 2min, infinity)",
                              row->name, text);
        if (*ret == 0 && row->kind == OPTION_INTERVAL)
                return refuse_value(row, text, "not a time above 0", why);
        return 0;
}

static int texts_add(char ***texts, size_t n, char *text) {
        char **more = reallocarray(*texts, n + 2, sizeof(char *));

        if (!more)
                return -ENOMEM;
        more[n] = text;
        more[n + 1] = NULL;
        *texts = more;
        return 0;
}

static size_t texts_count(char **texts) {
        size_t n = 0;

        while (texts && texts[n])
                n++;
        return n;
}

static int option_apply(void *options, const OptionRow *row, char *argument, Refusal *why) {
        void *field = (char *) options + row->offset;

        switch (row->kind) {
        case OPTION_SET:
        case OPTION_CLEAR:
                *(bool *) field = row->kind == OPTION_SET;
                return 0;
        case OPTION_TEXT:
                *(const char **) field = argument;
                return 0;
        case OPTION_TEXTS:
                return texts_add(field, texts_count(*(char ***) field), argument);
        case OPTION_NUMBER:
        case OPTION_POSITIVE:
                return number_parse(row, argument, field, why);
        case OPTION_TIME:
        case OPTION_INTERVAL:
                return time_parse(row, argument, field, why);
        }
        return 0;
}

typedef struct GetoptTables {
        char letters[3 * OPTION_ROWS_MAX + 3];
        struct option names[OPTION_ROWS_MAX + 1];
} GetoptTables;

static void getopt_tables_fill(GetoptTables *g, const OptionTable *t) {
        /* '+': stop at the first word that is no option; '-': return it; ':': distinguish a missing
         * argument from an unknown option */
        char *letter = stpcpy(g->letters, t->mixed ? "-:" : "+:");
        size_t n_names = 0;

        for (size_t i = 0; i < t->n_rows; i++) {
                const OptionRow *row = &t->rows[i];

                if (row->name)
                        g->names[n_names++] = (struct option){
                                .name = row->name,
                                .has_arg = row->argument ? required_argument : no_argument,
                                .val = row->letter ?: NO_LETTER + (int) i,
                        };
                if (!row->letter)
                        continue;
                *letter++ = row->letter;
                if (row->argument)
                        *letter++ = ':';
        }
        *letter = '\0';
        g->names[n_names] = (struct option){};
}

static const OptionRow *row_find(const OptionTable *t, int value) {
        if (value >= NO_LETTER)
                return &t->rows[value - NO_LETTER];
        for (size_t i = 0; i < t->n_rows; i++)
                if (t->rows[i].letter && t->rows[i].letter == value)
                        return &t->rows[i];
        return NULL;
}

/* getopt(3) leaves a long option in argv, and the letter of a short one in optopt. */
static int refuse_option(const OptionTable *t, int value, char **argv, Refusal *why) {
        const OptionRow *row = row_find(t, optopt);
        const char *word = argv[optind - 1];
        char letter[] = { '-', (char) optopt, '\0' };

        if (value == ':')
                return refuse(why, REFUSAL_INVALID_ARGS, "option --%s needs an argument: %s",
                              row->name, row->argument);
        if (row)
                return refuse(why, REFUSAL_INVALID_ARGS, "option --%s takes no argument",
                              row->name);
        return refuse(why, REFUSAL_INVALID_ARGS, "unknown or ambiguous option '%.64s' (see --help)",
                      optopt ? letter : word);
}

static int value_take(const OptionTable *t, void *options, int value, char **argv, OptionWords *w,
                      Refusal *why) {
        const OptionRow *row;
        int r;

        if (value == WORD) {
                r = texts_add(&w->words, w->n_words, optarg);
                if (r == 0)
                        w->n_words++;
                return r;
        }
        row = row_find(t, value);
        if (!row)
                return refuse_option(t, value, argv, why);
        w->given |= UINT64_C(1) << (row - t->rows);
        return option_apply(options, row, optarg, why);
}

/* The word that was taken last is the first one of rest. */
static bool words_are_over(const OptionTable *t, OptionWords *w, char **rest) {
        if (!t->ending || w->n_words != 2 || strcmp(w->words[0], t->ending) != 0)
                return false;
        w->words[--w->n_words] = NULL;
        w->rest = rest;
        return true;
}

int option_table_parse(const OptionTable *t, void *options, int argc, char **argv, OptionWords *ret,
                       Refusal *why) {
        OptionWords w = OPTION_WORDS_NULL;
        GetoptTables tables;
        int value, r;

        getopt_tables_fill(&tables, t);
        opterr = 0;
        optind = 0; /* glibc: start again */
        while ((value = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
                r = value_take(t, options, value, argv, &w, why);
                if (r != 0) {
                        free(w.words);
                        return r;
                }
                if (value == WORD && words_are_over(t, &w, argv + optind - 1))
                        break;
        }
        if (!w.rest && optind < argc)
                w.rest = argv + optind;
        *ret = w;
        return 0;
}

bool option_row_goes_with(const OptionRow *row, const char *verb) {
        size_t n = strlen(verb);

        if (!row->verbs)
                return true;
        for (const char *p = row->verbs; *p; p += strcspn(p, " "), p += strspn(p, " "))
                if (strcspn(p, " ") == n && strncmp(p, verb, n) == 0)
                        return true;
        return false;
}

static void row_print(const OptionRow *row) {
        char name[32];

        if (!row->name)
                return;
        (void) snprintf(name, sizeof(name), "--%s%s%s", row->name, row->argument ? "=" : "",
                        row->argument ?: "");
        printf("  %c%c%c %-19s %s\n", row->letter ? '-' : ' ', row->letter ?: ' ',
               row->letter ? ',' : ' ', name, row->help);
}

static bool rows_go_together(const OptionRow *a, const OptionRow *b) {
        return a->verbs == b->verbs || (a->verbs && b->verbs && strcmp(a->verbs, b->verbs) == 0);
}

/* "Options for open, watch:" */
static void heading_print(const OptionRow *row) {
        if (!row->verbs) {
                puts("Options:");
                return;
        }
        fputs("\nOptions for ", stdout);
        for (const char *p = row->verbs; *p; p++)
                printf(*p == ' ' ? ", " : "%c", *p);
        puts(":");
}

static void verb_print(const OptionTable *t, const char *verb) {
        bool any = false;

        for (size_t i = 0; i < t->n_rows; i++) {
                if (!t->rows[i].verbs || !option_row_goes_with(&t->rows[i], verb))
                        continue;
                if (!any)
                        printf("\nOptions for %s:\n", verb);
                row_print(&t->rows[i]);
                any = true;
        }
}

void option_table_print(const OptionTable *t, const char *verb) {
        bool printed[OPTION_ROWS_MAX] = {};

        if (verb) {
                verb_print(t, verb);
                return;
        }

        for (size_t i = 0; i < t->n_rows; i++) {
                if (printed[i])
                        continue;
                heading_print(&t->rows[i]);
                for (size_t j = i; j < t->n_rows; j++)
                        if (rows_go_together(&t->rows[i], &t->rows[j])) {
                                row_print(&t->rows[j]);
                                printed[j] = true;
                        }
        }
}
