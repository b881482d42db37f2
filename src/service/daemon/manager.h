/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All parts of the running service.
 */

#include "service/broker/broker.h"
#include "service/counter/counter.h"
#include "service/event/event-call.h"
#include "service/event/event-stream.h"
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
        Brokers brokers;
        Samplers samplers;
        Monitors monitors;
        ConfiguredMonitors configured;
        Bridges *bridges;
        Probing *probing;
        Turn yielding; /* and resuming */
        bool ends;     /* systemd stops the service: nothing of it outlives this process */
};

/* m is all zero before. Takes over the reader. */
void manager_init(Manager *m, Reader *reader);

/* Makes all parts, once there are a loop and a configuration. */
int manager_start(Manager *m);

/* Restores what an earlier run has left. */
int manager_restore(Manager *m);

/* A Peer has left. */
void manager_forget_peer(void *manager, Peer *peer);

/* Whether there is nothing that a client has made. */
bool manager_is_idle(const void *manager);

/* manager_leave() tells what is still to be told, and closes the connection to the bus, in a
 * bounded time; manager_end() ends what was made over the bus; manager_done() the rest, after the
 * bus's filters have ended. */
void manager_leave(Manager *m);
void manager_end(Manager *m);
void manager_done(Manager *m);
