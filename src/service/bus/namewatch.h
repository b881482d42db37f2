/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who leaves the bus: unique names that are watched until they go.
 *
 * Each has a match of its own, so that the service is not woken by every other connection's end.
 * The bus allows few matches a connection (dbus-daemon 512, others less), so beyond
 * NAMEWATCH_MATCHES_MAX one match for all takes over. A bus that refuses even these is no bus to
 * live on: libsystemd then ends the connection.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct NameWatch NameWatch;
typedef struct NameWatches NameWatches;

#define NAMEWATCH_MATCHES_MAX 64

struct NameWatch {
        NameWatches *watches;
        const char *name;   /* its owner's */
        sd_bus_slot *match; /* its own, or: */
        bool covered;       /* by the one for all */
};

struct NameWatches {
        sd_bus *bus;
        /* The name has left; it may be any that is not watched, too. */
        void (*left)(void *userdata, const char *name);
        void *userdata;
        sd_bus_slot *match_all;
        size_t n_matches;
        size_t n_covered;
};

/* What the bus is asked after this, it answers when it watches already. */
int namewatch_start(NameWatches *w, const char *name, NameWatch *watch);

/* Fine for one that was never started or is stopped already. */
void namewatch_stop(NameWatch *watch);
