/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The numbered objects on the bus: /org/perfalloc1/KIND/N.
 *
 * An Object is a member of a struct of its kind. Each kind has one Objects, which finds its objects
 * by number and by path, and enumerates them.
 */

#include <perfalloc/dbus.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "core/util.h"
#include "service/bus/object-node.h"

typedef struct Object Object;
typedef struct ObjectKind ObjectKind;
typedef struct ObjectRegistry ObjectRegistry;
typedef struct Objects Objects;

struct ObjectKind {
        const char *name;
        const char *interface;
        const sd_bus_vtable *vtable; /* its userdata is the struct with the Object */
        size_t offset;               /* of the Object in that struct */
        bool secret;                 /* it has properties for its owner only */
        bool (*tell)(void *objects); /* of ObjectNode, for the Objects */
};

struct Object {
        uint64_t id; /* 0: none yet */
        char *path;  /* NULL: it is in no Objects */
        uid_t uid;   /* of its owner */
};

struct Objects {
        const ObjectKind *kind;
        ObjectNode node;
        void *tree; /* of Object by id: tsearch(3) */
        size_t n;
        LIST_ENTRY(Objects) kinds;
};

struct ObjectRegistry {
        LIST_HEAD(, Objects) kinds;
        LIST_HEAD(, ObjectNode) nodes; /* of these, and of objects without numbers */
};

/* Puts a kind, which has no objects yet, on the bus and into the registry. */
int objects_register(Objects *all, const ObjectKind *kind, sd_bus *bus, ObjectRegistry *registry);

/* Gives the object its number and path. all must be registered. -EEXIST: the number is in use.
 * -ENOMEM. */
int object_enter(Object *o, Objects *all, uint64_t id);

/* The object can no longer be found, and its path is freed, or returned. Fine for one that was not
 * entered. */
void object_leave(Object *o, Objects *all);
char *object_leave_path(Object *o, Objects *all);

/* InterfacesAdded and InterfacesRemoved of an object that is entered. Best effort: when they cannot
 * be sent the connection is lost, which the loop notices. */
void object_signal_added(Object *o, const Objects *all, sd_bus *bus);
void object_signal_removed(const Object *o, const Objects *all, sd_bus *bus);

Object *objects_find(const Objects *all, uint64_t id); /* NULL: there is none */

Object *objects_find_path(const Objects *all, const char *path);

/* Calls f for each object, in the order of numbers; f must not change the set. */
void objects_walk(const Objects *all, void (*f)(void *userdata, Object *o), void *userdata);

/* The paths of all objects, for a node enumerator of sd-bus: NULL-terminated, freed by the
 * caller. */
int objects_enumerate(const Objects *all, char ***ret_nodes);

/* The number in an object path of that kind. False: the path has none, or spells it in another way
 * than the service does ("01"). */
bool object_path_number(const char *path, const char *kind, uint64_t *ret);

/* Whether the object at path has secret properties, and another owner than uid. */
bool object_is_foreign(const ObjectRegistry *registry, const char *path, uid_t uid);

/* Whether any object is such. */
bool objects_have_foreign(const ObjectRegistry *registry, uid_t uid);
