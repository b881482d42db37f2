/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Watches unique names until they leave the bus.
 *
 * Each name has a match of its own, so that other connections' ends do not wake up the service. The
 * bus limits the matches of a connection (dbus-daemon: 512, others less), so beyond
 * NAMEWATCH_MATCHES_MAX one match covers all names. If the bus refuses even these, libsystemd
 * closes the connection.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct NameWatch NameWatch;
typedef struct NameWatches NameWatches;

#define NAMEWATCH_MATCHES_MAX 64

struct NameWatch {
        NameWatches *watches;
        const char *name;   /* of the owner of the watch */
        sd_bus_slot *match; /* NULL: see covered */
        bool covered;       /* by match_all */
};

struct NameWatches {
        sd_bus *bus;
        /* A name has left. It may be one that is not watched. */
        void (*left)(void *userdata, const char *name);
        void *userdata;
        sd_bus_slot *match_all;
        size_t n_matches;
        size_t n_covered;
};

/* Starts a watch. The bus handles messages in order, so its answers to later calls come with the
 * match in effect. */
int namewatch_start(NameWatches *w, const char *name, NameWatch *watch);

/* Fine for a watch that was not started, or was stopped. */
void namewatch_stop(NameWatch *watch);
