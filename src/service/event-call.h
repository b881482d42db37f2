/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One OpenEvent call on its way: read, target inspected, authorized, opened disabled, target
 * inspected again, enabled if the client wanted it so, and handed out. The event is the client's
 * then: it is no object, and the service keeps no descriptor of it.
 */

#include "service/service.h"

/* The handler of Manager.OpenEvent. */
int event_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* The peer has left: its calls under way are undone. */
void event_calls_forget_peer(Service *s, Peer *peer);
void event_calls_done(Service *s);
