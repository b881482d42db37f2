/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "table.h"

#include <ctype.h>
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <string.h>

#include "client/ctl/table-fit.h"
#include "client/ctl/words.h"
#include "core/clock.h"
#include "core/timespan.h"

struct Table {
        const TableSpec *spec;
        struct libscols_table *scols;
        struct libscols_line *row;
        bool json, legend, terminal;
        size_t width; /* of the terminal; 0: there is none */
        uint64_t now_usec;
        int error;
};

/* ---- cells ---- */

/* The text for people, or a JSON value. NULL: no memory. */
typedef char *(*CellFormat)(const Table *t, const Value *v);

static char *format_text(const Table *t, const Value *v) {
        return strdup(v->text && *v->text ? v->text : "-");
}

static char *json_text(const Table *t, const Value *v) {
        return words_json(v->text ?: "");
}

static char *format_number(const Table *t, const Value *v) {
        return words_format("%" PRIu64, v->number);
}

static char *format_count(const Table *t, const Value *v) {
        return t->terminal ? words_count(v->number) : format_number(t, v);
}

static char *format_all(const Table *t, const Value *v) {
        return v->number == 0 ? strdup("all") : format_number(t, v);
}

static char *format_some(const Table *t, const Value *v) {
        return v->number == 0 ? strdup("-") : format_number(t, v);
}

static char *format_hex(const Table *t, const Value *v) {
        return words_format("0x%" PRIx64, v->number);
}

static char *format_real(const Table *t, const Value *v) {
        return words_format("%.6g", v->real);
}

/* All digits that a double has. */
static char *json_real(const Table *t, const Value *v) {
        return words_format("%.17g", v->real);
}

static char *format_bool(const Table *t, const Value *v) {
        return strdup(v->number ? "yes" : "no");
}

static char *json_bool(const Table *t, const Value *v) {
        return strdup(v->number ? "true" : "false");
}

static char *format_user(const Table *t, const Value *v) {
        return words_user((uid_t) v->number);
}

static char *format_span(const Table *t, const Value *v) {
        return timespan_format(v->number);
}

static char *format_nsec(const Table *t, const Value *v) {
        return timespan_format(v->number / NSEC_PER_USEC);
}

/* The distance is 0 if the clock was set back. */
static char *format_distance(uint64_t from, uint64_t to, const char *before, const char *after) {
        _cleanup_free_ char *span = timespan_format(to > from ? to - from : 0);

        return span ? words_format("%s%s%s", before, span, after) : NULL;
}

/* As in the journal, with the year: entries may be old. */
static char *format_time(const Table *t, const Value *v) {
        time_t seconds = (time_t) (v->number / USEC_PER_SEC);
        char text[32] = "-";
        struct tm tm;

        if (localtime_r(&seconds, &tm))
                (void) strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
        return strdup(text);
}

static char *format_since(const Table *t, const Value *v) {
        return v->number == 0 ? strdup("-") : format_distance(v->number, t->now_usec, "", " ago");
}

static char *format_until(const Table *t, const Value *v) {
        return v->number == 0 ? strdup("-") : format_distance(t->now_usec, v->number, "in ", "");
}

/* The texts that item makes of each, separated by commas. */
static char *join(char **texts, const char *begin, char *(*item)(const char *text),
                  const char *end) {
        _cleanup_free_ char *joined = NULL;
        bool whole = true;
        size_t size;
        FILE *f = open_memstream(&joined, &size);

        if (!f)
                return NULL;
        fputs(begin, f);
        for (char **text = texts; text && *text; text++) {
                _cleanup_free_ char *words = item(*text);

                fprintf(f, "%s%s", text > texts ? "," : "", words ?: "");
                whole &= words != NULL;
        }
        fputs(end, f);
        return fclose(f) == 0 && whole ? TAKE_PTR(joined) : NULL;
}

static char *path_digits(const char *path) {
        return words_format("%" PRIu64, path_number(path));
}

static char *format_texts(const Table *t, const Value *v) {
        return v->texts && v->texts[0] ? join(v->texts, "", strdup, "") : strdup("-");
}

static char *format_paths(const Table *t, const Value *v) {
        return v->texts && v->texts[0] ? join(v->texts, "", path_digits, "") : strdup("-");
}

static char *json_texts(const Table *t, const Value *v) {
        return join(v->texts, "[", words_json, "]");
}

static char *json_numbers(const Table *t, const Value *v) {
        return join(v->texts, "[", strdup, "]");
}

static const struct {
        CellFormat people, json;
        int flags;
} kinds[_COLUMN_KIND_MAX] = {
        [COLUMN_TEXT] = { format_text, json_text },
        [COLUMN_STATE] = { format_text, json_text },
        [COLUMN_NUMBER] = { format_number, format_number, SCOLS_FL_RIGHT },
        [COLUMN_COUNT] = { format_count, format_number, SCOLS_FL_RIGHT },
        [COLUMN_ALL] = { format_all, format_number, SCOLS_FL_RIGHT },
        [COLUMN_SOME] = { format_some, format_number, SCOLS_FL_RIGHT },
        [COLUMN_HEX] = { format_hex, format_number, SCOLS_FL_RIGHT },
        [COLUMN_REAL] = { format_real, json_real, SCOLS_FL_RIGHT },
        [COLUMN_BOOL] = { format_bool, json_bool },
        [COLUMN_USER] = { format_user, format_number },
        [COLUMN_SPAN] = { format_span, format_number, SCOLS_FL_RIGHT },
        [COLUMN_NSEC] = { format_nsec, format_number, SCOLS_FL_RIGHT },
        [COLUMN_TIME] = { format_time, format_number },
        [COLUMN_SINCE] = { format_since, format_number },
        [COLUMN_UNTIL] = { format_until, format_number },
        [COLUMN_TEXTS] = { format_texts, json_texts },
        [COLUMN_PATHS] = { format_paths, json_texts },
        [COLUMN_NUMBERS] = { format_texts, json_numbers },
};

static const struct {
        const char *state;
        const char *color;
} colors[] = {
        { "granted", "green" },  { "counting", "green" },  { "exact", "green" },
        { "queued", "yellow" },  { "yielding", "yellow" }, { "asked", "yellow" },
        { "yielded", "yellow" }, { "scaled", "yellow" },   { "not-counted", "red" },
        { "obstructed", "red" }, { "denied", "red" },      { "degraded", "red" },
        { "error", "red" },      { "ended", "darkgray" },  { "stopped", "darkgray" },
};

static const char *color_of(const char *state) {
        for (size_t i = 0; i < ELEMENTSOF(colors); i++)
                if (strcmp(colors[i].state, state) == 0)
                        return colors[i].color;
        return NULL;
}

/* ---- rows ---- */

void table_add_row(Table *t) {
        t->row = scols_table_new_line(t->scols, NULL);
        if (!t->row)
                t->error = -ENOMEM;
        for (size_t i = 0; i < t->spec->n_columns && t->error == 0; i++)
                if (scols_line_set_data(t->row, i, t->json ? "null" : "-") != 0)
                        t->error = -ENOMEM;
}

static void cell_put(Table *t, size_t column, const Value *v) {
        ColumnKind kind = t->spec->columns[column].kind;
        const char *color = NULL;
        char *text;

        if (t->error < 0)
                return;
        text = t->json ? kinds[kind].json(t, v) : kinds[kind].people(t, v);
        if (!text || scols_line_refer_data(t->row, column, text) != 0) {
                free(text);
                t->error = -ENOMEM;
                return;
        }
        if (kind == COLUMN_STATE)
                color = color_of(text);
        if (color)
                (void) scols_cell_set_color(scols_line_get_cell(t->row, column), color);
}

void table_put(Table *t, const char *column, const Value *v) {
        for (size_t i = 0; i < t->spec->n_columns; i++)
                if (strcmp(t->spec->columns[i].name, column) == 0)
                        cell_put(t, i, v);
}

void table_put_number(Table *t, const char *column, uint64_t n) {
        table_put(t, column, &(Value){ .kind = VALUE_NUMBER, .number = n });
}

void table_put_real(Table *t, const char *column, double n) {
        table_put(t, column, &(Value){ .kind = VALUE_REAL, .real = n });
}

void table_put_text(Table *t, const char *column, const char *text) {
        table_put(t, column, &(Value){ .kind = VALUE_TEXT, .text = (char *) text });
}

void table_add_object(Table *t, const Object *o) {
        table_add_row(t);
        for (size_t i = 0; i < t->spec->n_columns; i++) {
                const Column *column = &t->spec->columns[i];
                Value number = { .kind = VALUE_NUMBER, .number = o->number };
                _cleanup_free_ char *words = column->words ? column->words(o) : NULL;

                if (column->words)
                        cell_put(t, i, &(Value){ .kind = VALUE_TEXT, .text = words });
                else
                        cell_put(t, i,
                                 column->property ? object_value(o, column->property) : &number);
                if (column->words && !words)
                        t->error = -ENOMEM;
        }
}

int table_put_members(Table *t, sd_bus_message *m, const char *types, const char *const columns[]) {
        int r = 0;

        for (size_t i = 0; types[i] && r >= 0; i++) {
                _cleanup_(value_done) Value v = VALUE_NULL;

                r = value_read_as(&v, m, (const char[]){ types[i], '\0' });
                if (r >= 0)
                        table_put(t, columns[i], &v);
        }
        return r;
}

int table_add_array(Table *t, sd_bus_message *m, const char *types, const char *const columns[]) {
        int r = sd_bus_message_enter_container(m, 'a', NULL);

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', types)) > 0) {
                table_add_row(t);
                r = table_put_members(t, m, types, columns);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return MIN(r, 0);
}

/* ---- the table ---- */

static bool terminal_has_colors(void) {
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        return !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static int column_add(Table *t, const Column *column) {
        int flags = kinds[column->kind].flags | (column->cut ? SCOLS_FL_TRUNC : 0) |
                    (column->detail ? SCOLS_FL_HIDDEN : 0);

        return scols_table_new_column(t->scols, column->name, 0, flags) ? 0 : -ENOMEM;
}

int table_new(const Ctl *c, const TableSpec *spec, Table **ret) {
        _cleanup_(table_freep) Table *t = calloc(1, sizeof(Table));

        if (!t)
                return -ENOMEM;
        *t = (Table){ .spec = spec,
                      .scols = scols_new_table(),
                      .json = c->options->json,
                      .legend = !c->options->no_legend,
                      .terminal = c->terminal,
                      .width = c->width,
                      .now_usec = now_usec(CLOCK_REALTIME) };
        if (!t->scols)
                return -ENOMEM;
        (void) scols_table_enable_noheadings(t->scols, !t->legend);
        (void) scols_table_enable_colors(t->scols, t->terminal && terminal_has_colors());
        for (size_t i = 0; i < spec->n_columns; i++)
                if (column_add(t, &spec->columns[i]) < 0)
                        return -ENOMEM;
        *ret = TAKE_PTR(t);
        return 0;
}

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        scols_unref_table(t->scols);
        free(t);
        return NULL;
}

size_t table_rows(const Table *t) {
        return scols_table_get_nlines(t->scols);
}

/* ---- printing ---- */

static void print_key(const char *name, FILE *f) {
        fputc('"', f);
        for (const char *p = name; *p; p++)
                fputc(tolower((unsigned char) *p), f);
        fputs("\": ", f);
}

static void print_row_json(const Table *t, struct libscols_line *row, FILE *f) {
        for (size_t i = 0; i < t->spec->n_columns; i++) {
                fprintf(f, "%s\t\t\t", i > 0 ? ",\n" : "");
                print_key(t->spec->columns[i].name, f);
                fputs(scols_cell_get_data(scols_line_get_cell(row, i)), f);
        }
}

int tables_print_json(Table *const tables[], size_t n_tables, FILE *f) {
        for (size_t i = 0; i < n_tables; i++) {
                const Table *t = tables[i];
                size_t n = table_rows(t);

                if (t->error < 0)
                        return t->error;
                fprintf(f, "%s\n\t\"%s\": [", i > 0 ? "," : "{", t->spec->name);
                for (size_t row = 0; row < n; row++) {
                        fprintf(f, "%s\n\t\t{\n", row > 0 ? "," : "");
                        print_row_json(t, scols_table_get_line(t->scols, row), f);
                        fputs("\n\t\t}", f);
                }
                fputs(n > 0 ? "\n\t]" : "]", f);
        }
        fputs("\n}\n", f);
        return 0;
}

int table_print(Table *t, FILE *f) {
        if (t->error < 0)
                return t->error;
        if (t->json)
                return tables_print_json(&t, 1, f);
        if (table_rows(t) == 0) {
                if (t->legend && t->spec->empty)
                        fprintf(f, "%s\n", t->spec->empty);
                return 0;
        }
        table_hide_rare(t->scols, t->spec);
        (void) scols_table_set_stream(t->scols, f);
        if (t->width > 0) {
                table_fit(t->scols, t->spec, t->width);
                (void) scols_table_set_termforce(t->scols, SCOLS_TERMFORCE_ALWAYS);
                (void) scols_table_set_termwidth(t->scols, t->width);
        }
        return MIN(scols_print_table(t->scols), 0);
}
