/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How long a hold lasts: how much of what was asked for, and until when.
 */

#include <systemd/sd-bus.h>

#include "client/object.h"

/* Says so if the hold ends earlier than asked_usec (0, TIMESPAN_INFINITY: until it is released)
 * after since_usec (CLOCK_REALTIME). */
void lifetime_say_cut(const Object *hold, uint64_t since_usec, uint64_t asked_usec);

typedef struct Lifetime Lifetime;

/* Says when a hold is about to expire. */
struct Lifetime {
        sd_bus *bus;
        const char *path;
        uint64_t said_usec; /* the end that was told; 0: none */
        sd_bus_slot *messages, *call;
};

#define LIFETIME_NULL ((Lifetime){})

/* For the connection that has asked for the hold: the service tells no other. path must stay valid.
 */
int lifetime_watch(Lifetime *l, sd_bus *bus, const char *path);
void lifetime_done(Lifetime *l);
