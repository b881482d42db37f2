/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The values of the past, as a line of small bars on a terminal, and as a picture (SVG) of a whole
 * recording.
 */

#include <stdio.h>

#include "core/util.h"

typedef struct History History;
typedef struct HistoryPoint HistoryPoint;

struct HistoryPoint {
        double seconds, value; /* value: NAN if it is not known */
};

struct History {
        HistoryPoint *points;
        size_t n, room;
};

#define HISTORY_NULL ((History){})

void history_done(History *h);

/* Adds a point. Without keep, all but the last that a terminal can show are forgotten. -ENOMEM. */
int history_add(History *h, double seconds, double value, bool keep);

/* The last values, up to width, as bars of eighths; unknown ones are blanks. utf8: as block
 * elements, else in ASCII. */
void history_print(const History *h, size_t width, bool utf8, FILE *f);

/* One panel for each history, named by labels, below each other, over the same time. */
int history_plot(const History *all, char *const *labels, size_t n, FILE *f);
