/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What counters have counted, read in one call and shown as a table.
 */

#include "client/ctl/table.h"

typedef struct Readings Readings;

struct Readings {
        char **paths; /* of counters */
        size_t n;
};

#define READINGS_NULL ((Readings){})

void readings_done(Readings *r);

/* One more, by its number or path. */
int readings_add(Readings *r, const char *word, Refusal *why);
void readings_drop_last(Readings *r);

/* The paths as an array of objects. */
int readings_append_paths(const Readings *r, sd_bus_message *m);

/* Reads and prints them. Others' persistent counters are opened for reading, if they may be. */
int readings_print(Ctl *c, const Readings *r, FILE *f, Refusal *why);

/* The same, a row for each CPU or thread. */
int readings_print_each(Ctl *c, const Readings *r, FILE *f, Refusal *why);
