/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tells what is being waited for, since when and until when, and for whom, once that takes longer
 * than a moment. On a terminal that is kept up to date in place; elsewhere it is told again when it
 * changes. A hold that is granted at once causes no call and no message of this.
 */

#include <systemd/sd-bus.h>

#include "client/object.h"

typedef struct Progress Progress;

struct Progress {
        sd_bus *bus;
        bool local;       /* the service is on this machine, and so are the holders' processes */
        const char *path; /* NULL: there is no hold yet */
        sd_event_source *timer;
        bool subscribed;
        sd_bus_slot *ended, *changed; /* signals after which there may be something new to tell */
        sd_bus_slot *call;
        Object hold; /* as it was last read */
        char *said;
};

#define PROGRESS_NULL ((Progress){})

/* The bus must be attached to an event loop. local: it is that of this machine. */
int progress_start(Progress *p, sd_bus *bus, bool local);
void progress_stop(Progress *p);

/* The hold exists. path must outlive p. */
void progress_set_hold(Progress *p, const char *path);

/* Tells the text now, unless it was told last. */
void progress_say(Progress *p, const char *text);
