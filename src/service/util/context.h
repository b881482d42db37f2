/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What every part of the service uses. It is made once, by daemon/service.c, and outlives all of
 * them.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "core/ledger.h"
#include "core/quota.h"
#include "perf/pmu/pmu.h"
#include "service/util/config.h"
#include "service/util/serial.h"
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

        Reader *reader;
        Store *store; /* what outlives this process */
        HostState *host;
        Peers *peers;
        Requests *requests;
        Delivery *delivery;
        ObjectRegistry *objects;
        Auth *auth;
        Redaction *redaction;
        Capacities *capacities;

        uint64_t called_usec; /* CLOCK_MONOTONIC: when the last call was handled */

        /* Something was made or has gone: the idle exit looks anew. */
        void (*touched)(void *userdata);
        void *userdata;
};

static inline void context_touch(const Context *context) {
        if (context->touched)
                context->touched(context->userdata);
}
