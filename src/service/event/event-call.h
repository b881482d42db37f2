/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One OpenEvent call: read, target held and inspected, authorized, opened disabled, target
 * inspected by the reader, enabled if the client asked for that, and handed out. The event is the
 * client's then: it is no object, and the service keeps no descriptor of it.
 *
 * If the caller is the target, or has a proof, and asks for nothing else, the first inspection is
 * left out: the event tells nobody anything before it is handed out. If the second one then finds
 * that the caller may not trace the target, the event is closed, and polkit is asked for
 * count-other.
 */

#include "service/bus/peer.h"
#include "service/event/event-open.h"

/* The handler of Manager.OpenEvent; userdata is the Events. */
int event_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* Calls f for the events of other users in the scope that are open and not handed out yet. */
void event_calls_foreign(const Events *events, uid_t uid, const Scope *scope,
                         void (*f)(void *userdata, const Peer *peer, const Pmu *pmu),
                         void *userdata);
