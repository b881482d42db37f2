/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The way to the service, and what its errors say to a person. Texts end up in a Refusal for their
 * room; its code means nothing here.
 */

#include <systemd/sd-bus.h>

#include "core/refusal.h"

enum {
        BUS_E_FAILED = 1, /* the words are in why */
};

typedef enum BusPlace {
        BUS_HERE,
        BUS_HOST,    /* over ssh: carries no descriptors */
        BUS_MACHINE, /* a local container */
} BusPlace;

/* Connects to the system bus. BUS_E_FAILED also where the bus cannot carry descriptors, and so no
 * lease. */
int bus_open(sd_bus **ret, Refusal *why);

/* As above, but for any place (name: of the host or container), and without asking for descriptors.
 */
int bus_open_at(BusPlace place, const char *name, sd_bus **ret, Refusal *why);

/* Returns BUS_E_FAILED, with the error's own words. What does not come from the service itself gets
 * a hint of where to look. */
int bus_refuse(const sd_bus_error *error, Refusal *why);

/* Whether the service went away while it was asked, and the bus did not. Whether it did what it was
 * asked for is not known; it is being started again, and another call waits for that. */
bool bus_lost_service(sd_bus_message *reply);

/* An asynchronous method call without arguments, and without a time-out: for calls that wait for
 * people or a queue. */
int bus_call_patiently(sd_bus *bus, sd_bus_slot **ret_slot, const char *path, const char *interface,
                       const char *member, sd_bus_message_handler_t done, void *userdata);
