/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All parts of the running service.
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
