/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Objects with one interface below one prefix, as libsystemd finds and enumerates them, which
 * managed.h puts into replies too.
 */

#include <sys/queue.h>
#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct ObjectNode ObjectNode;

struct ObjectNode {
        const char *interface;
        const sd_bus_vtable *vtable;
        sd_bus_object_find_t find;
        sd_bus_node_enumerator_t enumerate;
        void *userdata; /* of both */

        /* Sends a few of the signals that are queued. False: there is none. NULL: nothing is
         * queued, signals are sent at once. While the node is frozen nobody calls it. */
        bool (*tell)(void *userdata);
        bool frozen;
        LIST_ENTRY(ObjectNode) nodes;
};

/* Puts the objects on the bus. */
int object_node_register(ObjectNode *n, sd_bus *bus, const char *prefix);

/* The paths of all: NULL-terminated, strings_free(). */
int object_node_enumerate(const ObjectNode *n, sd_bus *bus, char ***ret, sd_bus_error *error);

/* Appends the object and its properties to a{oa{sa{sv}}}, as libsystemd does. An object that is no
 * longer there is left out. */
int object_node_append(const ObjectNode *n, const char *path, sd_bus_message *reply,
                       sd_bus_error *error);

/* Broadcasts InterfacesAdded with all properties of the object, as find would give it; and
 * InterfacesRemoved, also for one that is gone already. Best effort. */
void object_node_signal_added(const ObjectNode *n, sd_bus *bus, const char *path, void *object);
void object_node_signal_removed(const ObjectNode *n, sd_bus *bus, const char *path);
