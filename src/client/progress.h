/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Says what is being waited for, and for whom, once that takes longer than a moment; again when it
 * changes. Nobody's rest is disturbed before: a hold that comes at once asks and hears nothing of
 * this.
 */

#include <systemd/sd-bus.h>

#include "client/object.h"

typedef struct Progress Progress;

struct Progress {
        sd_bus *bus;
        const char *path; /* NULL: there is no hold yet */
        sd_event_source *timer;
        bool subscribed;
        sd_bus_slot *ended, *changed; /* signals that may change what there is to say */
        sd_bus_slot *call;
        Object hold; /* as it was looked at last */
        char *said;
};

#define PROGRESS_NULL ((Progress){})

/* The bus has to be attached to an event loop. */
int progress_start(Progress *p, sd_bus *bus);
void progress_stop(Progress *p);

/* The hold is there; path has to outlive p. */
void progress_set_hold(Progress *p, const char *path);

/* Says it now, unless it was what was said last. */
void progress_say(Progress *p, const char *text);
