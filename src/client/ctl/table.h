/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tables, for people and as JSON.
 */

#include <stdio.h>

#include "client/ctl/column.h"
#include "client/ctl/ctl.h"

typedef struct Table Table;

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
