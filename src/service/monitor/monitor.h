/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Registered monitors: programs that own counters of their own and give way when they are asked,
 * over the bus.
 *
 * Each is an object /org/perfalloc1/monitor/N. What it is told (Yield, Resume) goes to its client
 * alone. It ends with its client's connection or its lease.
 */

#include "service/monitor/monitor-object.h"

/* The handler of Manager.RegisterMonitor; userdata is the Monitors. */
int monitor_handle_register(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* The client has given way to hold number hold. An answer that nobody awaits (any more) changes
 * nothing. */
void monitor_yielded(Monitor *monitor, uint64_t hold);

/* The same, to be called before the answer to the client: from now on the next run of the service
 * knows it too. */
void monitor_note_yielded(Monitor *monitor, uint64_t hold);

const char *monitor_state(const Monitor *monitor); /* counting, asked, yielded */

void monitors_forget_peer(Monitors *monitors, Peer *peer);

/* For the end of the service: nobody is told. */
void monitors_done(Monitors *monitors);

/* ---- for monitor-restore.c ---- */

/* peer may be NULL, for the caller to fill in. Returns NULL without memory. */
Monitor *monitor_allocate(Monitors *monitors, uid_t uid, Peer *peer);
int monitor_watch_lease(Monitor *monitor, int lease); /* takes it over on success */
int monitor_enter(Monitor *monitor, uint64_t id);     /* it can be found, and is told to yield */
void monitor_ask(Monitor *monitor, uint64_t hold, uint64_t deadline_usec);
Monitor *monitor_free(Monitor *monitor); /* which was not entered, or has left */
DEFINE_CLEANUP(Monitor *, monitor_free)
