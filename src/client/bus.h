/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The connection to the service, and its errors as text for people. Texts are returned in a
 * Refusal, whose code means nothing here.
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

/* Connects to the system bus. BUS_E_FAILED also if the bus cannot carry descriptors, and so no
 * lease. */
int bus_open(sd_bus **ret, Refusal *why);

/* As above, but for any place, and descriptors are not required. name is the host's or the
 * container's. */
int bus_open_at(BusPlace place, const char *name, sd_bus **ret, Refusal *why);

/* Returns BUS_E_FAILED, with the error's own text. An error that does not come from the service
 * gets a hint where to look. */
int bus_refuse(const sd_bus_error *error, Refusal *why);

/* Whether the service ended during the call, and the bus did not. It is not known whether the call
 * had its effect. The service is being restarted, and a further call waits for that. */
bool bus_lost_service(sd_bus_message *reply);

/* Whether the call has not come to the service, which the bus could not start or does not know: it
 * may be about to be restarted. */
bool bus_missed_service(sd_bus_message *reply);

/* An asynchronous method call without arguments and without a time-out, for calls that wait for
 * people or a queue. */
int bus_call_patiently(sd_bus *bus, sd_bus_slot **ret_slot, const char *path, const char *interface,
                       const char *member, sd_bus_message_handler_t done, void *userdata);
