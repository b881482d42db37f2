/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service's objects and their properties, as they were at one moment.
 */

#include "client/ctl/ctl.h"
#include "client/ctl/value.h"

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

/* All objects but the Manager. */
int objects_fetch(Ctl *c, Objects *ret, Refusal *why);
void objects_done(Objects *o);

/* Those of an interface: for (o = objects_next(all, i, NULL); o; o = objects_next(all, i, o)) */
const Object *objects_next(const Objects *all, const char *interface, const Object *after);
size_t objects_count(const Objects *all, const char *interface);
const Object *objects_find(const Objects *all, const char *path);

/* A single object. */
int object_fetch(Ctl *c, const char *path, const char *interface, Object *ret, Refusal *why);
void object_done(Object *o);

/* A property, or a value of kind VALUE_NONE; its number or 0; its text or "". */
const Value *object_value(const Object *o, const char *property);
uint64_t object_number(const Object *o, const char *property);
const char *object_text(const Object *o, const char *property);
bool object_is(const Object *o, const char *property, const char *text);

#define OBJECTS_FOREACH(o, all, interface)                                                         \
        for (const Object *o = objects_next(all, interface, NULL); o;                              \
             o = objects_next(all, interface, o))
