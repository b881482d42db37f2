/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "object.h"

#include <perfalloc/dbus.h>
#include <string.h>

/* ---- one ---- */

void object_done(Object *o) {
        for (size_t i = 0; i < o->n_properties; i++) {
                free(o->properties[i].name);
                value_done(&o->properties[i].value);
        }
        free(o->properties);
        free(o->interface);
        free(o->path);
        *o = OBJECT_NULL;
}

int object_add(Object *o, const char *property, Value value) {
        Property *more = reallocarray(o->properties, o->n_properties + 1, sizeof(Property));
        char *name = strdup(property);

        o->properties = more ?: o->properties;
        if (!more || !name) {
                free(name);
                value_done(&value);
                return -ENOMEM;
        }
        more[o->n_properties++] = (Property){ name, value };
        return 0;
}

static int property_read(Object *o, sd_bus_message *m) {
        const char *name;
        Value value;
        int r = sd_bus_message_read_basic(m, 's', &name);

        if (r >= 0)
                r = value_read(&value, m);
        return r < 0 ? r : object_add(o, name, value);
}

uint64_t path_number(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? strtoull(slash + 1, NULL, 10) : 0;
}

int object_read(Object *ret, sd_bus_message *m, const char *path, const char *interface) {
        _cleanup_(object_done) Object o = { .path = strdup(path),
                                            .interface = strdup(interface),
                                            .number = path_number(path) };
        int r = o.path && o.interface ? sd_bus_message_enter_container(m, 'a', "{sv}") : -ENOMEM;

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = property_read(&o, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret = o;
        o = OBJECT_NULL;
        return 0;
}

static const Value nothing = { .kind = VALUE_NONE };

const Value *object_value(const Object *o, const char *property) {
        for (size_t i = 0; i < o->n_properties; i++)
                if (strcmp(o->properties[i].name, property) == 0)
                        return &o->properties[i].value;
        return &nothing;
}

uint64_t object_number(const Object *o, const char *property) {
        return object_value(o, property)->number;
}

double object_real(const Object *o, const char *property) {
        const Value *v = object_value(o, property);

        return v->kind == VALUE_REAL ? v->real : 1;
}

const char *object_text(const Object *o, const char *property) {
        return object_value(o, property)->text ?: "";
}

bool object_is(const Object *o, const char *property, const char *text) {
        return strcmp(object_text(o, property), text) == 0;
}

/* ---- all ---- */

void objects_done(Objects *o) {
        for (size_t i = 0; i < o->n; i++)
                object_done(&o->items[i]);
        free(o->items);
        *o = OBJECTS_NULL;
}

static int objects_add(Objects *all, sd_bus_message *m, const char *path) {
        Object *more;
        const char *interface;
        int r = sd_bus_message_read_basic(m, 's', &interface);

        if (r < 0)
                return r;
        if (strncmp(interface, PERFALLOC_BUS_NAME ".", strlen(PERFALLOC_BUS_NAME ".")) != 0)
                return sd_bus_message_skip(m, "a{sv}");
        more = reallocarray(all->items, all->n + 1, sizeof(Object));
        if (!more)
                return -ENOMEM;
        all->items = more;
        r = object_read(&more[all->n], m, path, interface);
        if (r >= 0)
                all->n++;
        return r;
}

/* A path, and an a{sa{sv}} of its interfaces. */
static int objects_read_one(Objects *all, sd_bus_message *m) {
        const char *path;
        int r = sd_bus_message_read_basic(m, 'o', &path);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
                r = objects_add(all, m, path);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int object_compare(const void *a, const void *b) {
        const Object *x = a, *y = b;
        int order = strcmp(x->interface, y->interface);

        if (order == 0)
                order = (x->number > y->number) - (x->number < y->number);
        return order ?: strcmp(x->path, y->path);
}

int objects_read(Objects *ret, sd_bus_message *m) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r = sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}")) > 0) {
                r = objects_read_one(&all, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return r;
        if (all.n > 0)
                qsort(all.items, all.n, sizeof(Object), object_compare);
        *ret = all;
        all = OBJECTS_NULL;
        return 0;
}

const Object *objects_next(const Objects *all, const char *interface, const Object *after) {
        for (size_t i = after ? (size_t) (after - all->items) + 1 : 0; i < all->n; i++)
                if (strcmp(all->items[i].interface, interface) == 0)
                        return &all->items[i];
        return NULL;
}

const Object *objects_find(const Objects *all, const char *path) {
        for (size_t i = 0; i < all->n; i++)
                if (strcmp(all->items[i].path, path) == 0)
                        return &all->items[i];
        return NULL;
}
