/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * polkit's D-Bus interface, as far as it is used here: org.freedesktop.PolicyKit1.Authority.
 */

#include <systemd/sd-bus.h>

#include "service/auth/details.h"

typedef struct PolkitAnswer PolkitAnswer;
typedef struct PolkitSubject PolkitSubject;

#define POLKIT_NAME      "org.freedesktop.PolicyKit1"
#define POLKIT_PATH      "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"

/* Whom polkit is asked about: a connection of the bus, or else a process. Borrowed. */
struct PolkitSubject {
        uid_t uid;
        const char *name; /* unique name; NULL: a process, which has the following */
        int pidfd;
        pid_t pid;
        uint64_t start_time; /* proc_pid_stat(5), in ticks since the boot */
};

struct PolkitAnswer {
        bool authorized;
        bool challenge; /* not authorized, but somebody could authenticate */
        bool dismissed; /* somebody was asked and would not */
        bool temporary; /* authorized only because somebody authenticated a while ago */
};

/* CheckAuthorization. id names this one request for polkit_cancel(). A polkit that knows no pidfd
 * goes by the number and the start time. */
int polkit_check_new(sd_bus *bus, const PolkitSubject *subject, const char *action,
                     const Details *details, bool interactive, const char *id,
                     sd_bus_message **ret);

/* Reads the reply; -EBADMSG and the like where it is none. */
int polkit_answer_read(sd_bus_message *m, PolkitAnswer *ret);

/* Nobody waits for the answer any more: prompts disappear. No reply is asked for. */
int polkit_cancel(sd_bus *bus, const char *id);

/* changed is called for every signal of that name on the interface; the sender is whoever the bus
 * lets send it. */
int polkit_watch(sd_bus *bus, sd_bus_message_handler_t changed, void *userdata, sd_bus_slot **ret);
