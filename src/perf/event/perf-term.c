/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf-term.h"

#include <string.h>

#include "core/number.h"

#define LABEL_MAX 128u /* bytes */

bool terms_split(char *text, Term terms[static TERMS_MAX], size_t *ret_n) {
        size_t n = 0;

        while (text && *text) {
                char *term = strsep(&text, ",");

                if (n == TERMS_MAX)
                        return false;
                terms[n].name = strsep(&term, "=");
                terms[n++].value = term;
        }
        *ret_n = n;
        return true;
}

static int take_name(Event *e, const Term *t, Refusal *why) {
        char *label;

        if (!t->value || !*t->value || strlen(t->value) > LABEL_MAX)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': term 'name' needs a name of at most %u bytes", e->name,
                              LABEL_MAX);
        label = strdup(t->value);
        if (!label)
                return -ENOMEM;
        free(e->label);
        e->label = label;
        return 0;
}

static int take_period(Event *e, const Term *t, Refusal *why) {
        uint64_t period;

        if (t->value && number_parse(t->value, &period) == 0 && period > 0)
                return 0;
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "event '%s': term 'period' needs a number above 0", e->name);
}

static int take_percore(Event *e, const Term *t, Refusal *why) {
        uint64_t value = 1;

        if (!t->value || (number_parse(t->value, &value) == 0 && value <= 1))
                return 0;
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "event '%s': '%.64s' of term 'percore': expected 0 or 1", e->name, t->value);
}

static const struct {
        const char *name;
        int (*take)(Event *e, const Term *t, Refusal *why);
} words[] = {
        { "name", take_name },
        { "period", take_period },
        { "percore", take_percore },
};

/* -ENOENT: it is not one of these. */
static int take(Event *e, const Term *t, Refusal *why) {
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcmp(words[i].name, t->name) == 0)
                        return words[i].take(e, t, why);
        return -ENOENT;
}

int perf_terms_take(Event *e, Term *terms, size_t *n_terms, Refusal *why) {
        size_t n = 0;

        for (size_t i = 0; i < *n_terms; i++) {
                int r = take(e, &terms[i], why);

                if (r == -ENOENT)
                        terms[n++] = terms[i];
                else if (r != 0)
                        return r;
        }
        *n_terms = n;
        return 0;
}
