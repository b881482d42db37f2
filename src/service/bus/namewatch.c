/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "namewatch.h"

#include <stdio.h>
#include <string.h>

#define DBUS_NAME "org.freedesktop.DBus"

/* arg2 is the new owner: a unique name has one only when it appears. */
#define LEAVING                                                                                    \
        "type='signal',sender='" DBUS_NAME "',path='/org/freedesktop/DBus',interface='" DBUS_NAME  \
        "',member='NameOwnerChanged',arg2=''"

/* The name that left the bus according to m, else NULL.
 *
 * Anybody can send us a signal of this name, and libsystemd cannot tell whether its sender owns the
 * well-known name of the match. The bus itself has no unique name. */
static const char *name_that_left(sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m), *name, *old, *new;

        if (!sender || strcmp(sender, DBUS_NAME) != 0)
                return NULL;
        if (sd_bus_message_read(m, "sss", &name, &old, &new) < 0 || new[0])
                return NULL;
        return name;
}

static int on_left(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        NameWatch *watch = userdata;
        const char *name = name_that_left(m);

        if (name && strcmp(name, watch->name) == 0)
                watch->watches->left(watch->watches->userdata, name);
        return 0;
}

static int on_somebody_left(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        NameWatches *w = userdata;
        const char *name = name_that_left(m);

        if (name)
                w->left(w->userdata, name);
        return 0;
}

static int watch_with_all(NameWatch *watch) {
        NameWatches *w = watch->watches;
        int r;

        if (!w->match_all) {
                r = sd_bus_add_match_async(w->bus, &w->match_all, LEAVING, on_somebody_left, NULL,
                                           w);
                if (r < 0)
                        return r;
        }
        watch->covered = true;
        w->n_covered++;
        return 0;
}

int namewatch_start(NameWatches *w, const char *name, NameWatch *watch) {
        static const char format[] = LEAVING ",arg0='%s'";
        char match[sizeof(format) + 256]; /* a bus name has at most 255 bytes */
        int r;

        *watch = (NameWatch){ .watches = w, .name = name };
        if (w->n_matches >= NAMEWATCH_MATCHES_MAX)
                return watch_with_all(watch);

        (void) snprintf(match, sizeof(match), format, name);
        r = sd_bus_add_match_async(w->bus, &watch->match, match, on_left, NULL, watch);
        if (r < 0)
                return r;
        w->n_matches++;
        return 0;
}

void namewatch_stop(NameWatch *watch) {
        NameWatches *w = watch->watches;

        if (watch->match) {
                watch->match = sd_bus_slot_unref(watch->match);
                w->n_matches--;
        }
        if (watch->covered) {
                watch->covered = false;
                if (--w->n_covered == 0)
                        w->match_all = sd_bus_slot_unref(w->match_all);
        }
}
