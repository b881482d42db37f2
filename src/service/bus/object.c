/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "object.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/util/options.h"

/* ---- one object ---- */

static int object_compare(const void *a, const void *b) {
        const Object *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

Object *objects_find(const Objects *all, uint64_t id) {
        const Object key = { .id = id };
        Object **found = tfind(&key, &all->tree, object_compare);

        return found ? *found : NULL;
}

int object_enter(Object *o, Objects *all, uint64_t id) {
        Object **place;

        o->id = id;
        if (asprintf(&o->path, PERFALLOC_OBJECT_PATH "/%s/%" PRIu64, all->kind->name, id) < 0) {
                o->path = NULL;
                return -ENOMEM;
        }
        place = tsearch(o, &all->tree, object_compare);
        if (place && *place == o) {
                all->n++;
                return 0;
        }
        free(o->path);
        o->path = NULL;
        return place ? -EEXIST : -ENOMEM;
}

char *object_leave_path(Object *o, Objects *all) {
        if (!o->path)
                return NULL;
        (void) tdelete(o, &all->tree, object_compare);
        all->n--;
        return TAKE_PTR(o->path);
}

void object_leave(Object *o, Objects *all) {
        free(object_leave_path(o, all));
}

/* ---- paths ---- */

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

Object *objects_find_path(const Objects *all, const char *path) {
        uint64_t id;

        return object_path_number(path, all->kind->name, &id) ? objects_find(all, id) : NULL;
}

/* ---- all of a kind ---- */

typedef struct ObjectWalk {
        void (*f)(void *userdata, Object *o);
        void *userdata;
} ObjectWalk;

static void object_visit(const void *node, VISIT which, void *userdata) {
        const ObjectWalk *walk = userdata;

        if (which == postorder || which == leaf)
                walk->f(walk->userdata, *(Object *const *) node);
}

void objects_walk(const Objects *all, void (*f)(void *userdata, Object *o), void *userdata) {
        ObjectWalk walk = { f, userdata };

        twalk_r(all->tree, object_visit, &walk);
}

typedef struct Enumeration {
        char **nodes;
        size_t n_nodes;
        int error;
} Enumeration;

static void enumerate_one(void *userdata, Object *o) {
        Enumeration *e = userdata;

        if (e->error < 0)
                return;
        e->nodes[e->n_nodes] = strdup(o->path);
        if (e->nodes[e->n_nodes])
                e->n_nodes++;
        else
                e->error = -ENOMEM;
}

int objects_enumerate(const Objects *all, char ***ret_nodes) {
        Enumeration e = { .nodes = calloc(all->n + 1, sizeof(char *)) };

        if (!e.nodes)
                return -ENOMEM;
        objects_walk(all, enumerate_one, &e);
        if (e.error < 0) {
                strings_free(e.nodes);
                return e.error;
        }
        *ret_nodes = e.nodes;
        return 0;
}

/* ---- on the bus ---- */

/* What the kind's vtable has as userdata. */
static void *object_owner(Object *o, const Objects *all) {
        return (char *) o - all->kind->offset;
}

static int bus_find(sd_bus *bus, const char *path, const char *interface, void *userdata,
                    void **ret_found, sd_bus_error *error) {
        const Objects *all = userdata;
        Object *o = objects_find_path(all, path);

        *ret_found = o ? object_owner(o, all) : NULL;
        return o != NULL;
}

static int bus_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
                         sd_bus_error *error) {
        return objects_enumerate(userdata, ret_nodes);
}

int objects_register(Objects *all, const ObjectKind *kind, sd_bus *bus, ObjectRegistry *registry) {
        char prefix[64];

        *all = (Objects){ .kind = kind,
                          .node = { .interface = kind->interface,
                                    .vtable = kind->vtable,
                                    .find = bus_find,
                                    .enumerate = bus_enumerate,
                                    .userdata = all,
                                    .tell = kind->tell } };
        LIST_INSERT_HEAD(&registry->kinds, all, kinds);
        LIST_INSERT_HEAD(&registry->nodes, &all->node, nodes);
        (void) snprintf(prefix, sizeof(prefix), PERFALLOC_OBJECT_PATH "/%s", kind->name);
        return object_node_register(&all->node, bus, prefix);
}

void object_signal_added(Object *o, const Objects *all, sd_bus *bus) {
        object_node_signal_added(&all->node, bus, o->path, object_owner(o, all));
}

void object_signal_removed(const Object *o, const Objects *all, sd_bus *bus) {
        object_node_signal_removed(&all->node, bus, o->path);
}

/* ---- whose they are ---- */

bool object_is_foreign(const ObjectRegistry *registry, const char *path, uid_t uid) {
        const Objects *all;
        const Object *o;

        LIST_FOREACH (all, &registry->kinds, kinds) {
                o = all->kind->secret ? objects_find_path(all, path) : NULL;
                if (o)
                        return o->uid != uid;
        }
        return false;
}

typedef struct Foreign {
        uid_t uid;
        bool any;
} Foreign;

static void foreign_look(void *userdata, Object *o) {
        Foreign *foreign = userdata;

        foreign->any |= o->uid != foreign->uid;
}

bool objects_have_foreign(const ObjectRegistry *registry, uid_t uid) {
        Foreign foreign = { .uid = uid };
        const Objects *all;

        LIST_FOREACH (all, &registry->kinds, kinds)
                if (all->kind->secret)
                        objects_walk(all, foreign_look, &foreign);
        return foreign.any;
}
