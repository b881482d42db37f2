/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kills the service at random times, in a separate thread, while the test goes on. The rig starts
 * the service again with what it has stored, as systemd does.
 */

#include "bus-util.h"

typedef struct Killer {
        guint delays[3];
        size_t n;
        gint done;
        pid_t last; /* that it killed */
        GThread *thread;
} Killer;

void killer_start(Killer *k); /* one kill, or a second one while the service starts */
bool killer_is_done(Killer *k);
unsigned killer_end(Killer *k); /* once the service runs again; returns the number of kills */
