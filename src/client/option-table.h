/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The options of a command as a table: their spelling, the place of their value, and their --help.
 */

#include "core/refusal.h"

typedef struct OptionRow OptionRow;

typedef enum OptionKind {
        OPTION_SET,   /* bool, becomes true */
        OPTION_CLEAR, /* bool, becomes false */
        OPTION_TEXT,  /* const char * */
        OPTION_TEXTS, /* char **, NULL-terminated: every use adds one; the caller frees the array */
        OPTION_NUMBER,   /* uint32_t */
        OPTION_POSITIVE, /* uint32_t from 1 */
        OPTION_TIME,     /* uint64_t, µs */
        OPTION_INTERVAL, /* uint64_t, µs, from 1 */
} OptionKind;

struct OptionRow {
        char letter;          /* 0: none */
        const char *name;     /* NULL: only a letter, a synonym that --help leaves out */
        const char *argument; /* NULL: takes none */
        OptionKind kind;
        size_t offset; /* of the value in the struct of options */
        const char *help;
        const char *verbs; /* verbs that it applies to, separated by spaces; NULL: all */
};

#define OPTION_ROWS_MAX 64u

typedef struct OptionTable {
        const OptionRow *rows;
        size_t n_rows;
        bool mixed;         /* words may be between options; else the first word ends them */
        const char *ending; /* if mixed, and this is the first word, the second one ends them */
} OptionTable;

/* The words of a command line, all from argv. */
typedef struct OptionWords {
        char **rest;  /* what follows the options, or "--"; NULL: nothing */
        char **words; /* if mixed, the words before "--"; the caller frees the array */
        size_t n_words;
        uint64_t given; /* a bit for each row that was used */
} OptionWords;

#define OPTION_WORDS_NULL ((OptionWords){})

/* REFUSAL_INVALID_ARGS names the option. options has what was read until then in any case. */
int option_table_parse(const OptionTable *t, void *options, int argc, char **argv, OptionWords *ret,
                       Refusal *why);

/* Whether an option applies to a verb. */
bool option_row_goes_with(const OptionRow *row, const char *verb);

/* Prints a line of --help for each row, grouped by verbs. verb: only its own options; NULL: all. */
void option_table_print(const OptionTable *t, const char *verb);
