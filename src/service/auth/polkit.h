/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * polkit's D-Bus interface, as far as it is used here: org.freedesktop.PolicyKit1.Authority.
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
        bool dismissed; /* somebody was asked and would not */
        bool temporary; /* authorized only because somebody authenticated a while ago */
};

/* CheckAuthorization for whoever has the unique name. id names this one request for
 * polkit_cancel(). */
int polkit_check_new(sd_bus *bus, const char *name, const char *action, const Details *details,
                     bool interactive, const char *id, sd_bus_message **ret);

/* Reads the reply; -EBADMSG and the like where it is none. */
int polkit_answer_read(sd_bus_message *m, PolkitAnswer *ret);

/* Nobody waits for the answer any more: prompts disappear. No reply is asked for. */
int polkit_cancel(sd_bus *bus, const char *id);

/* changed is called for every signal of that name on the interface; the sender is whoever the bus
 * lets send it. */
int polkit_watch(sd_bus *bus, sd_bus_message_handler_t changed, void *userdata, sd_bus_slot **ret);
