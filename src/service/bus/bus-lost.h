/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The end of the connection to the bus is the service's end as well
 * (sd_bus_set_exit_on_disconnect()); the journal is told who hung up.
 */

#include <systemd/sd-bus.h>

int bus_lost_init(sd_bus *bus);
