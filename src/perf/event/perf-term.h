/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The terms between the slashes of "cpu/event=0x3c,umask=0/", and those among them that say nothing
 * to the PMU: perf's name=, period= and percore.
 */

#include "core/refusal.h"
#include "perf/event/event.h"

typedef struct Term Term;

#define TERMS_MAX 64u

struct Term {
        const char *name, *value; /* value is NULL when there is none */
};

/* Splits "a=1,b,c=2" in place; false when there are too many. */
bool terms_split(char *text, Term terms[static TERMS_MAX], size_t *ret_n);

/* Removes perf's terms. name= becomes the event's label. period= is when to take samples, percore
 * how perf prints: neither changes what is counted. REFUSAL_INVALID_EVENT: a wrong value. */
int perf_terms_take(Event *e, Term *terms, size_t *n_terms, Refusal *why);
