/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Logs why the connection to the bus was lost. The service ends with its connection
 * (sd_bus_set_exit_on_disconnect()).
 */

#include <systemd/sd-bus.h>

int bus_lost_init(sd_bus *bus);
