/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Registered monitors: programs that have counters of their own, and yield when they are asked over
 * the bus.
 *
 * Each is an object /org/perfalloc1/monitor/N. Its signals Yield and Resume go to its client only.
 * It ends with its client's connection or its lease.
 */

#include "service/monitor/monitor-object.h"

/* The handler of Manager.RegisterMonitor; userdata is the Monitors. */
int monitor_handle_register(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* The client has yielded to that hold. An answer that is not awaited changes nothing. */
void monitor_yielded(Monitor *monitor, uint64_t hold);

/* Saves that the client has yielded. To be called before the reply to the client, so that the next
 * run of the service knows it too. */
void monitor_note_yielded(Monitor *monitor, uint64_t hold);

const char *monitor_state(const Monitor *monitor); /* counting, asked, yielded */

void monitors_forget_peer(Monitors *monitors, Peer *peer);

/* For the end of the service: sends no signals. */
void monitors_done(Monitors *monitors);

/* ---- for monitor-restore.c ---- */

/* peer may be NULL, for the caller to set later. NULL: no memory. */
Monitor *monitor_allocate(Monitors *monitors, uid_t uid, Peer *peer);
int monitor_watch_lease(Monitor *monitor, int lease); /* takes it over on success */
int monitor_enter(Monitor *monitor, uint64_t id);     /* it can be found, and is told to yield */

/* Sends Yield. hold 0: no new hold demands it. Then, or if it is elsewhere, the monitor is told the
 * hold that it was asked to yield to, or, if that is over, another one, and how long that waits. */
void monitor_ask(Monitor *monitor, uint64_t hold, uint64_t deadline_usec);

Monitor *monitor_free(Monitor *monitor); /* not entered, or left again */
DEFINE_CLEANUP(Monitor *, monitor_free)
