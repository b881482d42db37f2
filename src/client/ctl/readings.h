/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Readings of counters, read in one call and shown as a table.
 */

#include "client/ctl/table.h"

typedef struct Readings Readings;

struct Readings {
        char **paths; /* of counters */
        size_t n;
};

#define READINGS_NULL ((Readings){})

void readings_done(Readings *r);

/* Adds one by its number or path. */
int readings_add(Readings *r, const char *word, Refusal *why);
void readings_drop_last(Readings *r);

/* Appends the paths as an array of objects. */
int readings_append_paths(const Readings *r, sd_bus_message *m);

/* What one of them has counted. */
typedef struct ReadingValue {
        uint64_t value, enabled_nsec, running_nsec, estimate;
        char quality[16];
} ReadingValue;

/* Reads them. ret has room for all. */
int readings_read(Ctl *c, const Readings *r, ReadingValue *ret, Refusal *why);

/* A call of ReadCounters, and its answer as a table. all has the counters. */
int readings_call_new(Ctl *c, const Readings *r, sd_bus_message **ret);
int readings_print_answer(Ctl *c, const Readings *r, const Objects *all, sd_bus_message *answer,
                          FILE *f);

/* Reads and prints them. Other users' persistent counters are opened for reading, if that is
 * allowed. */
int readings_print(Ctl *c, const Readings *r, FILE *f, Refusal *why);

/* The same, a row for each CPU or thread. */
int readings_print_each(Ctl *c, const Readings *r, FILE *f, Refusal *why);
