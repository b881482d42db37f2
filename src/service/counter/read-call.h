/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager.ReadCounters.
 */

#include <systemd/sd-bus.h>

/* The handler; userdata is the Counters. */
int read_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
