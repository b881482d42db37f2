/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "object.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/options.h"

bool object_path_number(const char *path, const char *kind, uint64_t *ret) {
        char again[64];
        const char *slash = strrchr(path, '/');
        uint64_t id = slash ? strtoull(slash + 1, NULL, 10) : 0;

        (void) snprintf(again, sizeof(again), PERFALLOC_OBJECT_PATH "/%s/%" PRIu64, kind, id);
        if (id == 0 || strcmp(path, again) != 0)
                return false;
        *ret = id;
        return true;
}

typedef struct Enumeration {
        int (*path)(const void *object, char **ret);
        char **nodes;
        size_t n_nodes, n_places;
        int error;
} Enumeration;

static void enumerate_one(const void *node, VISIT which, void *userdata) {
        Enumeration *e = userdata;

        if ((which != postorder && which != leaf) || e->error < 0)
                return;
        if (e->n_nodes + 1 >= e->n_places) {
                size_t n = e->n_places ? e->n_places * 2 : 16;
                char **nodes = reallocarray(e->nodes, n, sizeof(char *));

                if (!nodes) {
                        e->error = -ENOMEM;
                        return;
                }
                e->nodes = nodes;
                e->n_places = n;
        }
        e->error = e->path(*(const void *const *) node, &e->nodes[e->n_nodes]);
        if (e->error >= 0)
                e->n_nodes++;
        e->nodes[e->n_nodes] = NULL;
}

int object_enumerate(void *tree, int (*path)(const void *object, char **ret), char ***ret_nodes) {
        Enumeration e = { .path = path };

        twalk_r(tree, enumerate_one, &e);
        if (e.error < 0) {
                strings_free(e.nodes);
                return e.error;
        }
        *ret_nodes = e.nodes;
        return 0;
}

int object_register(Service *s, const char *kind, const char *interface,
                    const sd_bus_vtable *vtable, sd_bus_object_find_t find,
                    sd_bus_node_enumerator_t enumerate) {
        char prefix[64];
        int r;

        (void) snprintf(prefix, sizeof(prefix), PERFALLOC_OBJECT_PATH "/%s", kind);
        r = sd_bus_add_fallback_vtable(s->bus, NULL, prefix, interface, vtable, find, s);
        return r < 0 ? r : sd_bus_add_node_enumerator(s->bus, NULL, prefix, enumerate, s);
}
