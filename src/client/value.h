/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The value of a D-Bus property, of one of the types in org.perfalloc1(5).
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct Value Value;

typedef enum ValueKind {
        VALUE_NONE,
        VALUE_NUMBER, /* u, t */
        VALUE_REAL,   /* d */
        VALUE_BOOL,
        VALUE_TEXT,    /* s, o */
        VALUE_TEXTS,   /* as, ao; a(us): the text, and "(pid N)" where N is not 0 */
        VALUE_NUMBERS, /* au, as texts */
} ValueKind;

struct Value {
        ValueKind kind;
        uint64_t number;
        double real;
        char *text;
        char **texts; /* NULL-terminated */
        size_t n_texts;
};

#define VALUE_NULL ((Value){ .kind = VALUE_NONE })

/* Reads a variant. Unknown types are skipped, and are VALUE_NONE. */
int value_read(Value *ret, sd_bus_message *m);
void value_done(Value *v);

/* Reads a value of one of these types, without a variant around it. */
int value_read_as(Value *ret, sd_bus_message *m, const char *type);

/* Adds one to VALUE_NUMBERS; to VALUE_TEXTS, a copy. */
int value_add_number(Value *v, uint64_t n);
int value_add_text(Value *v, const char *text);
