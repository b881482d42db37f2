/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "table-fit.h"

#include <string.h>
#include <wchar.h>

#define CUT_MIN 20u /* columns that may be cut are no narrower, if they have so much to show */

/* Of a text on a terminal; what is no text in this locale has a column for each byte. */
static size_t text_width(const char *text) {
        wchar_t wide[256];
        size_t n = mbstowcs(wide, text, ELEMENTSOF(wide));
        int width = n < ELEMENTSOF(wide) ? wcswidth(wide, n) : -1;

        return width < 0 ? strlen(text) : (size_t) width;
}

typedef struct Width {
        size_t least; /* what it needs */
        bool empty;   /* no row has anything in it */
} Width;

static Width column_width(struct libscols_table *scols, const Column *column, size_t i) {
        size_t heading = text_width(column->name), widest = 0;
        Width w = { .empty = true };

        for (size_t row = 0; row < scols_table_get_nlines(scols); row++) {
                struct libscols_line *line = scols_table_get_line(scols, row);
                const char *text = scols_cell_get_data(scols_line_get_cell(line, i)) ?: "";

                w.empty &= strcmp(text, "-") == 0;
                widest = MAX(widest, text_width(text));
        }
        if (column->cut)
                widest = MIN(widest, CUT_MIN);
        w.least = MAX(heading, widest);
        return w;
}

static bool column_is_hidden(struct libscols_table *scols, size_t i) {
        return scols_column_get_flags(scols_table_get_column(scols, i)) & SCOLS_FL_HIDDEN;
}

static void column_hide(struct libscols_table *scols, size_t i) {
        struct libscols_column *column = scols_table_get_column(scols, i);

        (void) scols_column_set_flags(column, scols_column_get_flags(column) | SCOLS_FL_HIDDEN);
}

/* What is most dispensable; n_columns: nothing is. */
static size_t find_dispensable(struct libscols_table *scols, const TableSpec *spec,
                               const Width *widths) {
        size_t best = spec->n_columns;
        unsigned highest = 0;

        for (size_t i = 0; i < spec->n_columns; i++) {
                unsigned drop = spec->columns[i].drop;

                if (drop == 0 || column_is_hidden(scols, i))
                        continue;
                if (widths[i].empty)
                        drop += 100;
                if (drop > highest) {
                        highest = drop;
                        best = i;
                }
        }
        return best;
}

void table_fit(struct libscols_table *scols, const TableSpec *spec, size_t width) {
        _cleanup_free_ Width *widths = calloc(spec->n_columns, sizeof(Width));
        size_t needed = 0, i;

        if (!widths)
                return;
        for (i = 0; i < spec->n_columns; i++) {
                widths[i] = column_width(scols, &spec->columns[i], i);
                if (!column_is_hidden(scols, i))
                        needed += widths[i].least + 1;
        }
        /* there is no blank after the last column */
        while (needed > width + 1 &&
               (i = find_dispensable(scols, spec, widths)) < spec->n_columns) {
                column_hide(scols, i);
                needed -= widths[i].least + 1;
        }
}

static bool column_is_empty(struct libscols_table *scols, size_t column) {
        for (size_t row = 0; row < scols_table_get_nlines(scols); row++) {
                struct libscols_line *line = scols_table_get_line(scols, row);

                if (strcmp(scols_cell_get_data(scols_line_get_cell(line, column)), "-") != 0)
                        return false;
        }
        return true;
}

void table_hide_rare(struct libscols_table *scols, const TableSpec *spec) {
        for (size_t i = 0; i < spec->n_columns; i++) {
                struct libscols_column *column = scols_table_get_column(scols, i);

                if (spec->columns[i].rare && column_is_empty(scols, i))
                        (void) scols_column_set_flags(column, scols_column_get_flags(column) |
                                                                      SCOLS_FL_HIDDEN);
        }
}
