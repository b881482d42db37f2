/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int read_number(sd_bus_message *m, const char *type, Value *v) {
        uint32_t u = 0;
        int r;

        if (type[0] == 't')
                return sd_bus_message_read_basic(m, 't', &v->number);
        r = sd_bus_message_read_basic(m, 'u', &u);
        v->number = u;
        return r;
}

static int read_bool(sd_bus_message *m, const char *type, Value *v) {
        int b = 0, r = sd_bus_message_read_basic(m, 'b', &b);

        v->number = b != 0;
        return r;
}

static int read_real(sd_bus_message *m, const char *type, Value *v) {
        return sd_bus_message_read_basic(m, 'd', &v->real);
}

static int read_text(sd_bus_message *m, const char *type, Value *v) {
        const char *s;
        int r = sd_bus_message_read_basic(m, type[0], &s);

        if (r < 0)
                return r;
        v->text = strdup(s);
        return v->text ? 0 : -ENOMEM;
}

/* ---- lists ---- */

/* Takes over the text. NULL: asprintf() or strdup() had no memory. */
static int texts_add(Value *v, char *text) {
        char **more = text ? reallocarray(v->texts, v->n_texts + 2, sizeof(char *)) : NULL;

        if (!more) {
                free(text);
                return -ENOMEM;
        }
        more[v->n_texts++] = text;
        more[v->n_texts] = NULL;
        v->texts = more;
        return 0;
}

int value_add_number(Value *v, uint64_t n) {
        char *text;

        return texts_add(v, asprintf(&text, "%" PRIu64, n) < 0 ? NULL : text);
}

int value_add_text(Value *v, const char *text) {
        return texts_add(v, strdup(text));
}

static int read_one_text(sd_bus_message *m, const char *type, char **ret) {
        const char *s;
        int r = sd_bus_message_read_basic(m, type[0], &s);

        if (r > 0)
                *ret = strdup(s);
        return r;
}

static int read_one_number(sd_bus_message *m, const char *type, char **ret) {
        uint32_t u;
        int r = sd_bus_message_read_basic(m, 'u', &u);

        if (r > 0 && asprintf(ret, "%" PRIu32, u) < 0)
                *ret = NULL;
        return r;
}

static int read_one_obstacle(sd_bus_message *m, const char *type, char **ret) {
        const char *who;
        uint32_t pid;
        int r = sd_bus_message_read(m, "(us)", &pid, &who);

        if (r <= 0)
                return r;
        if (pid == 0)
                *ret = strdup(who);
        else if (asprintf(ret, "%s (pid %" PRIu32 ")", who, pid) < 0)
                *ret = NULL;
        return r;
}

static int read_list(sd_bus_message *m, const char *type, Value *v,
                     int (*read_one)(sd_bus_message *m, const char *type, char **ret)) {
        char *text;
        int r = sd_bus_message_enter_container(m, 'a', type + 1);

        while (r >= 0 && (r = read_one(m, type + 1, &text)) > 0)
                r = texts_add(v, text);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_texts(sd_bus_message *m, const char *type, Value *v) {
        return read_list(m, type, v, read_one_text);
}

static int read_numbers(sd_bus_message *m, const char *type, Value *v) {
        return read_list(m, type, v, read_one_number);
}

static int read_obstacles(sd_bus_message *m, const char *type, Value *v) {
        return read_list(m, type, v, read_one_obstacle);
}

/* ---- all ---- */

static const struct Type {
        const char *type;
        ValueKind kind;
        int (*read)(sd_bus_message *m, const char *type, Value *v);
} types[] = {
        { "u", VALUE_NUMBER, read_number },    { "t", VALUE_NUMBER, read_number },
        { "d", VALUE_REAL, read_real },        { "b", VALUE_BOOL, read_bool },
        { "s", VALUE_TEXT, read_text },        { "o", VALUE_TEXT, read_text },
        { "as", VALUE_TEXTS, read_texts },     { "ao", VALUE_TEXTS, read_texts },
        { "au", VALUE_NUMBERS, read_numbers }, { "a(us)", VALUE_TEXTS, read_obstacles },
};

static const struct Type *type_find(const char *type) {
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (strcmp(types[i].type, type) == 0)
                        return &types[i];
        return NULL;
}

int value_read_as(Value *ret, sd_bus_message *m, const char *type) {
        const struct Type *row = type_find(type);
        int r;

        *ret = VALUE_NULL;
        if (!row)
                return -EOPNOTSUPP;
        ret->kind = row->kind;
        r = row->read(m, row->type, ret);
        if (r < 0)
                value_done(ret);
        return MIN(r, 0);
}

int value_read(Value *ret, sd_bus_message *m) {
        const struct Type *row;
        const char *type;
        char container;
        int r = sd_bus_message_peek_type(m, &container, &type);

        if (r < 0)
                return r;
        *ret = VALUE_NULL;
        row = container == 'v' ? type_find(type) : NULL;
        if (!row)
                return MIN(sd_bus_message_skip(m, NULL), 0);
        r = sd_bus_message_enter_container(m, 'v', row->type);
        if (r >= 0)
                r = value_read_as(ret, m, row->type);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                value_done(ret);
        return MIN(r, 0);
}

void value_done(Value *v) {
        for (char **t = v->texts; t && *t; t++)
                free(*t);
        free(v->texts);
        free(v->text);
        *v = VALUE_NULL;
}
