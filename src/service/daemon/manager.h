/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All nouns of the running service.
 */

#include "service/counter/counter.h"
#include "service/event/event-call.h"
#include "service/hold/hold.h"
#include "service/monitor/bridges.h"
#include "service/monitor/configured-monitor.h"
#include "service/monitor/monitor.h"
#include "service/pmu/probe-call.h"
#include "service/sampler/sampler.h"

typedef struct Manager Manager;

struct Manager {
        Context context;
        ObjectRegistry objects;
        Holds holds;
        Counters counters;
        Events events;
        Samplers samplers;
        Monitors monitors;
        ConfiguredMonitors configured;
        Bridges *bridges;
        Probing *probing;
};

/* All zero before; the reader is taken over. */
void manager_init(Manager *m, Reader *reader);

/* Makes all nouns, once there are a loop and a configuration. */
int manager_start(Manager *m);

/* Takes up what an earlier run has left. */
int manager_restore(Manager *m);

/* A Peer has left. */
void manager_forget_peer(void *manager, Peer *peer);

/* Whether nothing is there that somebody made. */
bool manager_is_idle(const void *manager);

/* Ends what was made over the bus, and after the bus's filters have gone the rest. */
void manager_end(Manager *m);
void manager_done(Manager *m);
