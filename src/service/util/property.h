/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Getters of D-Bus properties. A property that is a field of the object as it stands needs none:
 * without a getter sd-bus appends the field at the offset (sd_bus_add_object_vtable(3)).
 *
 * properties_changed() tells new values: n properties, each a name, a type and a value. The signal
 * is that of sd_bus_emit_properties_changed(), which takes half as long again, because it looks
 * for the object, the interface and each getter.
 */

#include <systemd/sd-bus.h>

#define PROPERTY_GETTER(name)                                                                      \
        static int name(sd_bus *bus, const char *path, const char *interface,                      \
                        const char *property, sd_bus_message *reply, void *userdata,               \
                        sd_bus_error *error)

/* type is "s" (const char *), "b" (int) or "t" (uint64_t). The first one returns the signal, NULL
 * for want of memory. */
sd_bus_message *properties_changed_new(sd_bus *bus, const char *path, const char *interface,
                                       unsigned n, ...);
void properties_changed(sd_bus *bus, const char *path, const char *interface, unsigned n, ...);
