/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Registered monitors: programs that own counters of their own and give way when they are asked,
 * over the bus.
 *
 * Each is an object /org/perfalloc1/monitor/N. What it is told (Yield, Resume) goes to its client
 * alone. It ends with its client's connection or its lease.
 */

#include "service/scope-request.h"
#include "service/service.h"
#include "yield/yielder.h"

typedef struct Monitor Monitor;

#define MONITOR_NAME_MAX 128u /* bytes */

struct Monitor {
        Yielder yielder;
        Service *service;
        uint64_t id;
        char *path;
        char *name;
        uid_t uid;
        Peer *peer;
        ScopeRequest what;
        QuotaCharge charge;
        uint64_t asked_for; /* the hold of the last Yield */
        int lease;          /* the read end */
        sd_event_source *lease_source;
};

/* The handler of Manager.RegisterMonitor. */
int monitor_handle_register(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* The client has given way to hold number hold. An answer that nobody awaits (any more) changes
 * nothing. */
void monitor_yielded(Monitor *monitor, uint64_t hold);

Monitor *monitor_find(Service *s, uint64_t id);
const char *monitor_state(const Monitor *monitor); /* counting, asked, yielded */

void monitors_forget_peer(Service *s, Peer *peer);
void monitors_done(Service *s);

int monitor_bus_register(Service *s);
