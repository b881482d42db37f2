/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * State that every part of the service uses. daemon/service.c makes it once; it outlives all parts.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "core/ledger.h"
#include "core/quota.h"
#include "perf/pmu/pmu.h"
#include "service/util/config.h"
#include "service/util/serial.h"
#include "service/util/totals.h"
#include "service/util/turn.h"
#include "yield/yielders.h"

typedef struct Auth Auth;
typedef struct Capacities Capacities;
typedef struct Context Context;
typedef struct Delivery Delivery;
typedef struct HostState HostState;
typedef struct ObjectRegistry ObjectRegistry;
typedef struct Peers Peers;
typedef struct Reader Reader;
typedef struct Redaction Redaction;
typedef struct Requests Requests;
typedef struct Store Store;

struct Context {
        Config config;
        sd_event *event;
        sd_bus *bus;
        PmuTable pmus;
        Ledger ledger;
        Yielders yielders;
        Quota quota;
        Serial serial;
        Totals totals;

        Reader *reader;
        Store *store; /* records and descriptors that outlive this process */
        HostState *host;
        Peers *peers;
        Requests *requests;
        Delivery *delivery;
        ObjectRegistry *objects;
        Auth *auth;
        Redaction *redaction;
        Capacities *capacities;

        Turns turns;          /* of work that others need not wait for */
        uint64_t called_usec; /* CLOCK_MONOTONIC: when the last call was handled */

        /* Something was created or removed: idle exit is evaluated again. */
        void (*touched)(void *userdata);
        void *userdata;
};

static inline void context_touch(const Context *context) {
        if (context->touched)
                context->touched(context->userdata);
}
