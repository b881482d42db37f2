/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service's objects and their properties, as they were at one moment.
 */

#include "client/value.h"

typedef struct Object Object;
typedef struct Objects Objects;
typedef struct Property Property;

struct Property {
        char *name;
        Value value;
};

struct Object {
        char *path;
        char *interface; /* org.perfalloc1.Hold... */
        uint64_t number; /* of the path; 0: it has none */
        Property *properties;
        size_t n_properties;
};

#define OBJECT_NULL ((Object){})

struct Objects {
        Object *items; /* by interface, then by number; those without one, by path */
        size_t n;
};

#define OBJECTS_NULL ((Objects){})

/* Reads what GetManagedObjects returns: all objects but the Manager. */
int objects_read(Objects *ret, sd_bus_message *m);
void objects_done(Objects *o);

/* Those of an interface: for (o = objects_next(all, i, NULL); o; o = objects_next(all, i, o)) */
const Object *objects_next(const Objects *all, const char *interface, const Object *after);
const Object *objects_find(const Objects *all, const char *path);

/* A single object: reads an a{sv} of properties, as GetAll returns it. */
int object_read(Object *ret, sd_bus_message *m, const char *path, const char *interface);
void object_done(Object *o);

/* The N of a path; 0: there is none. */
uint64_t path_number(const char *path);

/* Adds a property, and takes over the value. -ENOMEM. */
int object_add(Object *o, const char *property, Value value);

/* A property, or a value of kind VALUE_NONE; its number or 0; its text or "". */
const Value *object_value(const Object *o, const char *property);
uint64_t object_number(const Object *o, const char *property);
double object_real(const Object *o, const char *property); /* or 1 */
const char *object_text(const Object *o, const char *property);
bool object_is(const Object *o, const char *property, const char *text);

#define OBJECTS_FOREACH(o, all, interface)                                                         \
        for (const Object *o = objects_next(all, interface, NULL); o;                              \
             o = objects_next(all, interface, o))
