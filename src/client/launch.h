/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * COMMAND under the broker: it is started with a seccomp filter, whose listener goes to the
 * service, and runs once that has said yes. Where there can be no broker it runs without, and the
 * user is told.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "client/command.h"
#include "client/prover-client.h"
#include "core/refusal.h"

typedef struct Launch Launch;

enum {
        LAUNCH_READY = 0,
        LAUNCH_E_DENIED,      /* COMMAND is not prepared; why has the error */
        LAUNCH_E_INTERRUPTED, /* by signo */
        LAUNCH_E_OVER,        /* over was set */
};

typedef enum LaunchMode {
        LAUNCH_AUTO, /* where the kernel would refuse COMMAND something that is asked for */
        LAUNCH_YES,
        LAUNCH_NO,
} LaunchMode;

struct Launch {
        LaunchMode mode;
        const char *allow; /* actions, separated by commas */
        const char
                *paranoid; /* what COMMAND reads as kernel.perf_event_paranoid; NULL: what it is */
        bool strict;       /* a denial is LAUNCH_E_DENIED; else COMMAND runs without the broker */
        char **command;
        sd_bus *bus;
        sd_event *event;
        Signals *signals;
        const bool *over; /* set by an event handler: COMMAND is not to be run; or NULL */

        int signo;
        ProverClient prover;
        sd_bus_error denied; /* the service's answer */
};

void launch_done(Launch *l);

#define LAUNCH_ALLOW "sample-own"

/* REFUSAL_INVALID_ARGS: none of auto, yes and no. */
int launch_mode_parse(const char *text, LaunchMode *ret, Refusal *why);

/* Whether each word of the list is an action of Broker. REFUSAL_INVALID_ARGS. */
int launch_allow_check(const char *list, Refusal *why);

/* Prepares COMMAND, for command_run(). */
int launch_prepare(Launch *l, Command *ret, Refusal *why);
