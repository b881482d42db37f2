/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Registered monitors as objects, /org/perfalloc1/monitor/N: their data. What happens to them is in
 * monitor.h.
 */

#include "service/bus/object.h"
#include "service/bus/peer.h"
#include "service/hold/hold-object.h"
#include "service/pmu/scope-request.h"
#include "yield/yielder.h"

typedef struct Monitor Monitor;
typedef struct Monitors Monitors;

#define MONITOR_NAME_MAX 128u /* bytes */

struct Monitor {
        Object object;
        Yielder yielder;
        Monitors *monitors;
        Context *context;
        char *name;
        Peer *peer;
        ScopeRequest what;
        QuotaCharge charge;
        uint64_t asked_for; /* the hold of the last Yield */
        YielderState told;  /* the State that signals have told last */
        int lease;          /* the read end */
        sd_event_source *lease_source;
        sd_event_source *again; /* asks it once more after a restart */
        StoreItem item;
};

struct Monitors {
        Context *context;
        Holds *holds;
        Objects objects;
};

static inline Monitor *monitor_of_object(Object *o) {
        return container_of(o, Monitor, object);
}
