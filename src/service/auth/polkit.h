/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The part of polkit's D-Bus interface that is used: org.freedesktop.PolicyKit1.Authority.
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
        bool dismissed; /* somebody was asked, and dismissed the prompt */
        bool temporary; /* authorized by an earlier authentication */
};

/* CheckAuthorization. id names the request for polkit_cancel(). A polkit that knows no pidfd goes
 * by the number and the start time. */
int polkit_check_new(sd_bus *bus, const PolkitSubject *subject, const char *action,
                     const Details *details, bool interactive, const char *id,
                     sd_bus_message **ret);

/* Reads the reply. -EBADMSG and others: it is not such a reply. */
int polkit_answer_read(sd_bus_message *m, PolkitAnswer *ret);

/* Withdraws a request, and its prompt. Asks for no reply. */
int polkit_cancel(sd_bus *bus, const char *id);

/* Calls changed for every Changed signal of the interface, from any sender that the bus allows. */
int polkit_watch(sd_bus *bus, sd_bus_message_handler_t changed, void *userdata, sd_bus_slot **ret);
