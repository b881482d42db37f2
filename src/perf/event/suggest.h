/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Names similar to one that does not exist, for the text of a refusal.
 */

#include "core/util.h"

typedef struct Suggestions Suggestions;

#define SUGGEST_NAMES    3u
#define SUGGEST_NAME_MAX 64u /* longer names are ignored */

struct Suggestions {
        char wanted[SUGGEST_NAME_MAX];
        unsigned limit; /* edits; names that differ by more are not similar */
        size_t n_names;
        struct {
                char name[SUGGEST_NAME_MAX];
                unsigned distance;
        } names[SUGGEST_NAMES]; /* nearest first */
};

#define SUGGEST_TEXT_MAX (SUGGEST_NAMES * (SUGGEST_NAME_MAX + 4) + 16)

Suggestions suggest_begin(const char *wanted);

/* Considers a name, ignoring case. One that contains the wanted name is similar. */
void suggest_offer(Suggestions *n, const char *name);

/* "; near to it: a, b, c", or "" without suggestions. */
const char *suggest_text(const Suggestions *n, char buffer[static SUGGEST_TEXT_MAX]);
