/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Descriptors on their way to clients.
 *
 * dbus-daemon stops reading from a sender once 64 descriptors of that sender lie undelivered with
 * it, whoever they are for: one client that does not read its replies would stop the service for
 * all. So a call whose reply carries descriptors is admitted here first, and the descriptors that
 * were sent are counted until the bus has said that it has none left for that client
 * (GetConnectionStats of org.freedesktop.DBus.Debug.Stats). The bus handles our messages in their
 * order, so its answer covers everything that was sent before the question. The client is not asked
 * (a Ping, for instance): many clients read their replies and dispatch no calls.
 *
 * As long as few descriptors are unaccounted for, calls are admitted at once, and the bus is asked
 * once in DELIVERY_ASK descriptors. Otherwise a call waits until the bus has nothing left for the
 * client, and for the other connections of its user. It waits before anything is made for it.
 *
 * Where the bus does not tell there are no limits. dbus-broker does not; it never stops reading
 * from a sender, and disconnects receivers that exceed their quota.
 */

#include "service/bus/request.h"

/* Descriptors that may be undelivered: of a connection, beside its first message; of a user,
 * likewise; of all; of all, counting users that have none so far. */
#define DELIVERY_PEER_MAX  8u
#define DELIVERY_USER_MAX  16u
#define DELIVERY_TOTAL_MAX 32u
#define DELIVERY_LIMIT     63u

/* From so many on the bus is asked while calls are still admitted. */
#define DELIVERY_ASK 6u

/* How often it is asked about a client that does not read. */
#define DELIVERY_AGAIN_USEC (100 * USEC_PER_MSEC)

int delivery_new(Context *context, Delivery **ret);
Delivery *delivery_free(Delivery *d);

/* For handlers, before anything is made: whether n descriptors may be sent in reply to m. 0: yes;
 * they are counted. -EINPROGRESS: return 1 to sd-bus, the message will come back.
 * REFUSAL_LIMITS_EXCEEDED: the user has too many calls that wait. */
int delivery_admit(Context *context, Peer *peer, sd_bus_message *m, unsigned n, Refusal *why);

void delivery_forget_peer(Delivery *d, Peer *peer); /* it has left */
