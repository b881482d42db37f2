/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What all numbered objects on the bus share: /org/perfalloc1/KIND/N.
 */

#include "service/daemon/service.h"

/* The number of an object path of that kind; false when the path is none, or spells a number
 * otherwise than we do ("01"). */
bool object_path_number(const char *path, const char *kind, uint64_t *ret);

/* The paths of all objects in a tsearch(3) tree, as a node enumerator returns them. */
int object_enumerate(void *tree, int (*path)(const void *object, char **ret), char ***ret_nodes);

int object_register(Service *s, const char *kind, const char *interface,
                    const sd_bus_vtable *vtable, sd_bus_object_find_t find,
                    sd_bus_node_enumerator_t enumerate);
