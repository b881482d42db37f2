/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The options of a command as a table: how they are spelled, where their value goes, what --help
 * says of them.
 */

#include "core/refusal.h"

typedef struct OptionRow OptionRow;

typedef enum OptionKind {
        OPTION_SET,   /* bool, becomes true */
        OPTION_CLEAR, /* bool, becomes false */
        OPTION_TEXT,  /* const char * */
        OPTION_TEXTS, /* char **, NULL-terminated: every use adds one; the caller frees the array */
        OPTION_NUMBER, /* uint32_t from 1 */
        OPTION_TIME,   /* uint64_t, µs */
} OptionKind;

struct OptionRow {
        char letter; /* 0: none */
        const char *name;
        const char *argument; /* NULL: takes none */
        OptionKind kind;
        size_t offset; /* of the value in the struct of options */
        const char *help;
        const char *verbs; /* names of those it goes with, a space between them; NULL: all */
};

#define OPTION_ROWS_MAX 64u

typedef struct OptionTable {
        const OptionRow *rows;
        size_t n_rows;
        bool mixed; /* words may stand between options; else the first one ends them */
} OptionTable;

/* What a command line has. Texts are those of argv. */
typedef struct OptionWords {
        char **rest;  /* what stands behind the options, or behind "--"; NULL-terminated, NULL: none
                       */
        char **words; /* mixed: the words before "--"; NULL-terminated; the caller frees the array
                       */
        size_t n_words;
        uint64_t given; /* a bit for each row that was used */
} OptionWords;

#define OPTION_WORDS_NULL ((OptionWords){})

/* REFUSAL_INVALID_ARGS names the option. What was read until then is in options in any case. */
int option_table_parse(const OptionTable *t, void *options, int argc, char **argv, OptionWords *ret,
                       Refusal *why);

/* Whether a row goes with a verb. */
bool option_row_goes_with(const OptionRow *row, const char *verb);

/* A line of --help for each row. */
void option_table_print(const OptionTable *t);
