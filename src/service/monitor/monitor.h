/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Registered monitors: programs that own counters of their own and give way when they are asked,
 * over the bus.
 *
 * Each is an object /org/perfalloc1/monitor/N. What it is told (Yield, Resume) goes to its client
 * alone. It ends with its client's connection or its lease.
 */

#include "service/daemon/service.h"
#include "service/pmu/scope-request.h"
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
        sd_event_source *again; /* it is asked once more */
        StoreItem item;
};

/* The handler of Manager.RegisterMonitor. */
int monitor_handle_register(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* The client has given way to hold number hold. An answer that nobody awaits (any more) changes
 * nothing. */
void monitor_yielded(Monitor *monitor, uint64_t hold);

/* The same, to be called before the answer to the client: from now on the next run of the service
 * knows it too. */
void monitor_note_yielded(Monitor *monitor, uint64_t hold);

Monitor *monitor_find(Service *s, uint64_t id);
const char *monitor_state(const Monitor *monitor); /* counting, asked, yielded */

void monitors_forget_peer(Service *s, Peer *peer);

/* For the end of the service: nobody is told. */
void monitors_done(Service *s);

/* ---- across restarts (monitor-store.c) ---- */

void monitor_enter_store(Monitor *monitor);

/* What is known of it now. state is what it will be when whoever is concerned has been told. */
void monitor_save(Monitor *monitor, YielderState state);

/* The monitors of an earlier run. Those that have not answered are asked again, from the loop; for
 * all others who has to yield now is for yielders_apply() to find out. -ENOMEM. */
int monitors_restore(Service *s);

/* ---- from monitor.c ---- */

/* peer may be NULL, for the caller to fill in. Returns NULL without memory. */
Monitor *monitor_allocate(Service *s, uid_t uid, Peer *peer);
int monitor_watch_lease(Monitor *monitor, int lease); /* takes it over on success */
int monitor_enter(Monitor *monitor, uint64_t id);     /* it can be found, and is told to yield */
void monitor_ask(Monitor *monitor, uint64_t hold, uint64_t deadline_usec);
Monitor *monitor_free(Monitor *monitor); /* which was not entered, or has left */
DEFINE_CLEANUP(Monitor *, monitor_free)

int monitor_bus_register(Service *s);
