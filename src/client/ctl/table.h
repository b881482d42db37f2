/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tables, for people and as JSON.
 *
 * A table is a list of columns. A cell has a plain value, and the kind of its column decides how
 * that is shown: to people as "alice" and "2min ago", in JSON as the numbers of the D-Bus
 * interface.
 */

#include <stdio.h>

#include "client/ctl/ctl.h"

typedef struct Column Column;
typedef struct Table Table;
typedef struct TableSpec TableSpec;

typedef enum ColumnKind {
        COLUMN_TEXT,
        COLUMN_STATE, /* text, with a colour */
        COLUMN_NUMBER,
        COLUMN_COUNT, /* number, large */
        COLUMN_ALL,   /* number: 0 is all */
        COLUMN_SOME,  /* number: 0 is unknown or none */
        COLUMN_HEX,   /* number */
        COLUMN_REAL,
        COLUMN_BOOL,
        COLUMN_USER,  /* number: of a user */
        COLUMN_SPAN,  /* number: µs */
        COLUMN_NSEC,  /* number: ns */
        COLUMN_SINCE, /* number: µs of CLOCK_REALTIME; 0: not yet */
        COLUMN_UNTIL, /* number: likewise; 0: never */
        COLUMN_TEXTS,
        COLUMN_PATHS, /* texts: of objects; people see their numbers */
        COLUMN_NUMBERS,
        _COLUMN_KIND_MAX,
} ColumnKind;

struct Column {
        const char *name; /* the heading; in lower case the key in JSON */
        ColumnKind kind;
        const char *property; /* what table_add_object puts there; NULL: the object's number */
        char *(*words)(const Object *o); /* makes the text, instead of a property */
        bool cut;                        /* may be cut if the terminal is too narrow */
        bool detail;                     /* only as JSON */
        bool rare;                       /* people see it only if it has a value in some row */
};

struct TableSpec {
        const char *name;  /* the key in JSON */
        const char *empty; /* printed when there are no rows */
        const Column *columns;
        size_t n_columns;
};

int table_new(const Ctl *c, const TableSpec *spec, Table **ret);
Table *table_free(Table *t);
DEFINE_CLEANUP(Table *, table_free)

/* Adds a row, to be filled cell by cell, by the names of columns. An empty cell is "-", as JSON
 * null. Errors are kept for table_print(). */
void table_add_row(Table *t);
void table_put(Table *t, const char *column, const Value *v);
void table_put_number(Table *t, const char *column, uint64_t n);
void table_put_real(Table *t, const char *column, double n);
void table_put_text(Table *t, const char *column, const char *text);

/* Puts the next values of a message, of these basic types, each into its column. */
int table_put_members(Table *t, sd_bus_message *m, const char *types, const char *const columns[]);

/* Adds a row for each struct of an array. */
int table_add_array(Table *t, sd_bus_message *m, const char *types, const char *const columns[]);

/* Adds a row with the properties of the object. */
void table_add_object(Table *t, const Object *o);

size_t table_rows(const Table *t);

/* Prints the table, with headings unless switched off. As JSON: an object with one member, an array
 * of objects. */
int table_print(Table *t, FILE *f);

/* Prints one JSON object with a member for each table. */
int tables_print_json(Table *const tables[], size_t n_tables, FILE *f);
