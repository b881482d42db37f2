/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a table shows. A cell has a plain value, and the kind of its column decides how that is
 * shown: to people as "alice" and "2min ago", in JSON as the numbers of the D-Bus interface.
 */

#include "client/object.h"

typedef struct Column Column;
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
        COLUMN_TIME,  /* number: likewise, as date and time */
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
        unsigned drop; /* left out if the terminal is too narrow, the highest first; 0: never */
};

struct TableSpec {
        const char *name;  /* the key in JSON */
        const char *empty; /* printed when there are no rows */
        const Column *columns;
        size_t n_columns;
};
