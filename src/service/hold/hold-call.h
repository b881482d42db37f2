/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager.Hold and Manager.HoldUnattended.
 */

#include <systemd/sd-bus.h>

/* The handlers; userdata is the Holds. */
int hold_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
int hold_call_handle_unattended(sd_bus_message *m, void *userdata, sd_bus_error *error);
