/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The names that are nearest to one that does not exist, for the words of a refusal.
 */

#include "core/util.h"

typedef struct Near Near;

#define NEAR_NAMES    3u
#define NEAR_NAME_MAX 64u /* longer names are neither offered nor asked for */

struct Near {
        char wanted[NEAR_NAME_MAX];
        unsigned limit; /* edits; names that are further off are no help */
        size_t n_names;
        struct {
                char name[NEAR_NAME_MAX];
                unsigned distance;
        } names[NEAR_NAMES]; /* nearest first */
};

#define NEAR_TEXT_MAX (NEAR_NAMES * (NEAR_NAME_MAX + 4) + 16)

Near near_to(const char *wanted);

/* Considers a name; in any case, and a part of a name is near to the whole. */
void near_offer(Near *n, const char *name);

/* "; near to it: a, b, c", or "" when nothing is. */
const char *near_text(const Near *n, char buffer[static NEAR_TEXT_MAX]);
