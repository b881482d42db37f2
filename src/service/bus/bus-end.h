/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The end of the connection to the bus, which takes a bounded time: the bus may read nothing more
 * from the service, as some client does not read, and what clients have passed may take long to
 * close (fd-copies.h). libsystemd's own flush waits without limit.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

/* How long the bus may take for what is queued. Less than systemd's TimeoutStopSec= by far. */
#define BUS_END_USEC (3 * USEC_PER_SEC)

/* Sends what is queued, logs what could not be sent, and closes the connection. Messages that
 * arrive meanwhile are dropped: the bus tells their senders. */
void bus_end(sd_bus *bus);
