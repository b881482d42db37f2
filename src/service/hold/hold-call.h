/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager.Hold and Manager.HoldUnattended.
 */

#include "service/bus/peer.h"
#include "service/hold/hold-object.h"

/* Without manage a hold lasts at most HoldMaxSec: polkit is asked for manage when *lifetime_usec
 * (0: without an end) is longer, and it is cut if that is denied. AUTH_PENDING, or another fault.
 */
int hold_limit_lifetime(const Holds *holds, Peer *peer, sd_bus_message *m, uint64_t *lifetime_usec);

/* The handlers; userdata is the Holds. */
int hold_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
int hold_call_handle_unattended(sd_bus_message *m, void *userdata, sd_bus_error *error);
