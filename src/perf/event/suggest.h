/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The names that are nearest to one that does not exist, for the words of a refusal.
 */

#include "core/util.h"

typedef struct Suggestions Suggestions;

#define SUGGEST_NAMES    3u
#define SUGGEST_NAME_MAX 64u /* longer names are neither offered nor asked for */

struct Suggestions {
        char wanted[SUGGEST_NAME_MAX];
        unsigned limit; /* edits; names that are further off are no help */
        size_t n_names;
        struct {
                char name[SUGGEST_NAME_MAX];
                unsigned distance;
        } names[SUGGEST_NAMES]; /* nearest first */
};

#define SUGGEST_TEXT_MAX (SUGGEST_NAMES * (SUGGEST_NAME_MAX + 4) + 16)

Suggestions suggest_begin(const char *wanted);

/* Considers a name; in any case, and a part of a name is near to the whole. */
void suggest_offer(Suggestions *n, const char *name);

/* "; near to it: a, b, c", or "" when nothing is. */
const char *suggest_text(const Suggestions *n, char buffer[static SUGGEST_TEXT_MAX]);
