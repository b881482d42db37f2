/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The part of polkit's D-Bus interface that is used: org.freedesktop.PolicyKit1.Authority.
 */

#include <systemd/sd-bus.h>

#include "service/auth/details.h"

typedef struct PolkitAnswer PolkitAnswer;

#define POLKIT_NAME      "org.freedesktop.PolicyKit1"
#define POLKIT_PATH      "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"

struct PolkitAnswer {
        bool authorized;
        bool challenge; /* not authorized, but somebody could authenticate */
        bool dismissed; /* somebody was asked, and dismissed the prompt */
        bool temporary; /* authorized by an earlier authentication */
};

/* CheckAuthorization for the owner of a unique name. id names the request for polkit_cancel(). */
int polkit_check_new(sd_bus *bus, const char *name, const char *action, const Details *details,
                     bool interactive, const char *id, sd_bus_message **ret);

/* Reads the reply. -EBADMSG and others: it is not such a reply. */
int polkit_answer_read(sd_bus_message *m, PolkitAnswer *ret);

/* Withdraws a request, and its prompt. Asks for no reply. */
int polkit_cancel(sd_bus *bus, const char *id);

/* Calls changed for every Changed signal of the interface, from any sender that the bus allows. */
int polkit_watch(sd_bus *bus, sd_bus_message_handler_t changed, void *userdata, sd_bus_slot **ret);
