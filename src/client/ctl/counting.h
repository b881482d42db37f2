/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters while they count: they are read every second, so that there is something to print if
 * they end early. They survive a restart of the service, but not its stop, nor
 * the end of the connection to the bus.
 *
 * No service is started to find out: a start would cancel the stop (systemd.unit(5)). A service
 * whose name stays away has stopped.
 */

#include <stdio.h>

#include "client/ctl/readings.h"

typedef struct Counting Counting;

struct Counting {
        Ctl *c;
        const Readings *readings;
        Objects objects; /* with the counters */
        FILE *f;
        sd_bus_slot *owner, *disconnected, *call, *look;
        sd_event_source *timer;
        sd_bus_message *last; /* the answer of the last reading */
        uint64_t last_usec;   /* CLOCK_MONOTONIC */
        bool away;            /* the service's name has no owner */
        bool looks;           /* for the end of the target */
        bool ended;           /* the target has ended */
        bool lost;            /* the counters have ended */
};

#define COUNTING_NULL ((Counting){})

/* Begins to read. readings and f must stay. If the counters end, this is reported, what was read
 * last is printed to f, and lost is set. */
int counting_start(Counting *n, Ctl *c, const Readings *readings, FILE *f, Refusal *why);
void counting_done(Counting *n);

/* From now on it is also looked whether the counters still have a target: ended is set when they
 * have none. For processes of another host, of which there is no pidfd. */
void counting_look(Counting *n);

/* Waits until it is known whether the counters are there: 0, or CTL_E_FAILED if they are lost. */
int counting_settle(const Counting *n);
