/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "object-node.h"

#include <perfalloc/dbus.h>

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

int object_node_register(ObjectNode *n, sd_bus *bus, const char *prefix) {
        int r = sd_bus_add_fallback_vtable(bus, NULL, prefix, n->interface, n->vtable, n->find,
                                           n->userdata);

        return r < 0 ? r : sd_bus_add_node_enumerator(bus, NULL, prefix, n->enumerate, n->userdata);
}

int object_node_enumerate(const ObjectNode *n, sd_bus *bus, char ***ret, sd_bus_error *error) {
        return n->enumerate(bus, PERFALLOC_OBJECT_PATH, n->userdata, ret, error);
}

/* ---- properties ---- */

/* A property without a getter is the field at its place: a basic type, or "s" or "as". */
static int field_append(const char *type, void *place, sd_bus_message *reply) {
        if (*type == 'a')
                return sd_bus_message_append_strv(reply, *(char ***) place);
        return sd_bus_message_append_basic(reply, *type, *type == 's' ? *(char **) place : place);
}

static int value_append(const ObjectNode *n, const char *path, const sd_bus_vtable *v, void *place,
                        sd_bus_message *reply, sd_bus_error *error) {
        if (!v->x.property.get)
                return field_append(v->x.property.signature, place, reply);
        return v->x.property.get(sd_bus_message_get_bus(reply), path, n->interface,
                                 v->x.property.member, reply, place, error);
}

static int property_append(const ObjectNode *n, const char *path, const sd_bus_vtable *v,
                           void *object, sd_bus_message *reply, sd_bus_error *error) {
        int r = sd_bus_message_open_container(reply, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', v->x.property.member);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'v', v->x.property.signature);
        if (r >= 0)
                r = value_append(n, path, v, (char *) object + v->x.property.offset, reply, error);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int properties_append(const ObjectNode *n, const char *path, void *object,
                             sd_bus_message *reply, sd_bus_error *error) {
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        for (const sd_bus_vtable *v = n->vtable; r >= 0 && v->type != _SD_BUS_VTABLE_END; v++)
                if (v->type == _SD_BUS_VTABLE_PROPERTY)
                        r = property_append(n, path, v, object, reply, error);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* ---- objects ---- */

/* Its own one alone. libsystemd also says that each object has Peer, Introspectable and Properties,
 * which is a fifth of the reply for thousands of counters. */
static int interfaces_append(const ObjectNode *n, const char *path, void *object,
                             sd_bus_message *reply, sd_bus_error *error) {
        int r = sd_bus_message_append_basic(reply, 'o', path);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sa{sv}}");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'e', "sa{sv}");
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', n->interface);
        if (r >= 0)
                r = properties_append(n, path, object, reply, error);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

int object_node_append(const ObjectNode *n, const char *path, sd_bus_message *reply,
                       sd_bus_error *error) {
        void *object;
        int r = n->find(sd_bus_message_get_bus(reply), path, n->interface, n->userdata, &object,
                        error);

        if (r <= 0)
                return r;
        r = sd_bus_message_open_container(reply, 'e', "oa{sa{sv}}");
        if (r >= 0)
                r = interfaces_append(n, path, object, reply, error);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* ---- signals ---- */

/* sd_bus_emit_object_added() walks all vtables above the path, for each of their properties. */
void object_node_signal_added(const ObjectNode *n, sd_bus *bus, const char *path, void *object) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (sd_bus_message_new_signal(bus, &m, PERFALLOC_OBJECT_PATH, OBJECT_MANAGER,
                                      "InterfacesAdded") >= 0 &&
            interfaces_append(n, path, object, m, &error) >= 0)
                (void) sd_bus_send(bus, m, NULL);
}

/* sd_bus_emit_object_removed() wants the object. */
void object_node_signal_removed(const ObjectNode *n, sd_bus *bus, const char *path) {
        (void) sd_bus_emit_signal(bus, PERFALLOC_OBJECT_PATH, OBJECT_MANAGER, "InterfacesRemoved",
                                  "oas", path, 1, n->interface);
}
