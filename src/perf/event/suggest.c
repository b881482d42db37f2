/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_MAX 5u

Suggestions suggest_begin(const char *wanted) {
        Suggestions n = {};
        size_t length = strlen(wanted);

        if (length < sizeof(n.wanted))
                memcpy(n.wanted, wanted, length);
        n.limit = MIN(1 + (unsigned) strlen(n.wanted) / 4, LIMIT_MAX);
        return n;
}

/* The edit distance with swaps of neighbours ("optimal string alignment") of two names shorter than
 * SUGGEST_NAME_MAX. Stops when it exceeds limit: most of thousands of names differ early. */
static unsigned edit_distance(const char *a, const char *b, unsigned limit) {
        unsigned rows[3][SUGGEST_NAME_MAX], *before = rows[0], *last = rows[1], *row = rows[2];
        size_t width = strlen(b);

        for (size_t j = 0; j <= width; j++)
                row[j] = (unsigned) j;
        for (size_t i = 1; a[i - 1]; i++) {
                unsigned *unused = before, least = (unsigned) i;

                before = last;
                last = row;
                row = unused;
                row[0] = (unsigned) i;
                for (size_t j = 1; j <= width; j++) {
                        bool same = tolower(a[i - 1]) == tolower(b[j - 1]);

                        row[j] = MIN(last[j], row[j - 1]) + 1;
                        row[j] = MIN(row[j], last[j - 1] + !same);
                        if (i > 1 && j > 1 && tolower(a[i - 1]) == tolower(b[j - 2]) &&
                            tolower(a[i - 2]) == tolower(b[j - 1]))
                                row[j] = MIN(row[j], before[j - 2] + 1);
                        least = MIN(least, row[j]);
                }
                if (least > limit + 1) /* a swap reaches back two rows */
                        return least;
        }
        return row[width];
}

static unsigned distance_to(const Suggestions *n, const char *name) {
        size_t wanted = strlen(n->wanted), length = strlen(name);

        if (wanted >= 3 && strcasestr(name, n->wanted))
                return n->limit;
        if (MAX(wanted, length) - MIN(wanted, length) > n->limit)
                return n->limit + 1;
        return edit_distance(n->wanted, name, n->limit);
}

void suggest_offer(Suggestions *n, const char *name) {
        unsigned distance;
        size_t at;

        if (n->wanted[0] == '\0' || strlen(name) >= SUGGEST_NAME_MAX)
                return;
        distance = distance_to(n, name);
        if (distance > n->limit)
                return;
        for (at = 0; at < n->n_names && n->names[at].distance <= distance; at++)
                if (strcasecmp(n->names[at].name, name) == 0)
                        return;
        if (at == SUGGEST_NAMES)
                return;
        n->n_names = MIN(n->n_names + 1, SUGGEST_NAMES);
        memmove(&n->names[at + 1], &n->names[at], (n->n_names - at - 1) * sizeof(n->names[0]));
        memcpy(n->names[at].name, name, strlen(name) + 1);
        n->names[at].distance = distance;
}

const char *suggest_text(const Suggestions *n, char buffer[static SUGGEST_TEXT_MAX]) {
        size_t length = 0;

        buffer[0] = '\0';
        for (size_t i = 0; i < n->n_names; i++)
                length += (size_t) snprintf(buffer + length, SUGGEST_TEXT_MAX - length, "%s%s",
                                            i == 0 ? "; did you mean " : ", ", n->names[i].name);
        if (n->n_names > 0)
                (void) snprintf(buffer + length, SUGGEST_TEXT_MAX - length, "?");
        return buffer;
}
