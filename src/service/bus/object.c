/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "object.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/util/options.h"

/* The rest behind the prefix, NULL without it. */
static const char *text_after(const char *text, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

bool object_path_number(const char *path, const char *kind, uint64_t *ret) {
        const char *p = text_after(path, PERFALLOC_OBJECT_PATH "/");
        uint64_t id = 0;

        p = p ? text_after(p, kind) : NULL;
        if (!p || p[0] != '/' || p[1] == '0' || p[1] == '\0')
                return false;
        while (*++p) {
                unsigned digit = (unsigned char) *p - '0';

                if (digit > 9 || __builtin_mul_overflow(id, 10, &id) ||
                    __builtin_add_overflow(id, digit, &id))
                        return false;
        }
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
