/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which call is handled next: the filter in front of all handlers.
 *
 * The bus delivers the calls of all users in one queue. A user with many calls, or expensive ones,
 * would delay everybody else, and the bus would fill up. So each user is charged for the time that
 * their calls keep the loop busy. Calls of users with little recent service time are handled as
 * they arrive. Other users have a queue each, and the loop reads on, so that calls behind theirs
 * are reached at once. The queues are served round-robin, when nothing else is to be read, and
 * after every SCHEDULER_READ_MAX messages. After an expensive call its user is not served for a
 * while.
 *
 * Root is never queued. No queue is served while the bus does not accept the service's messages.
 */

#include "service/bus/request.h"

typedef struct Scheduler Scheduler;

/* Users below this much recent service time are not queued. SCHEDULER_PER_SEC of it decays in a
 * second. */
#define SCHEDULER_FREE_USEC (20 * USEC_PER_MSEC)
#define SCHEDULER_PER_SEC   (250 * USEC_PER_MSEC)

/* A call that takes this long is expensive. A user with SCHEDULER_PAUSE_USEC of recent service time
 * is not served for SCHEDULER_PAUSE times as long as their expensive call took. */
#define SCHEDULER_COSTLY_USEC 500u
#define SCHEDULER_PAUSE_USEC  (100 * USEC_PER_MSEC)
#define SCHEDULER_PAUSE       2u

/* The number of messages that are read before a queue is served. */
#define SCHEDULER_READ_MAX 32u

/* Messages of the service that the bus has not accepted yet. From the first number on, no queue is
 * served. From the second on, refusals are not sent either. At 393,216 libsystemd closes the
 * connection. Messages may be large, so no queue is served either after the bus has been behind for
 * SCHEDULER_UNSENT_USEC. */
#define SCHEDULER_UNSENT_MAX  32768u
#define SCHEDULER_REFUSED_MAX 131072u
#define SCHEDULER_UNSENT_USEC USEC_PER_SEC

#define IDENTIFYING_PEER_MAX 128u   /* calls of one sender; the bus allows it 128 pending replies */
#define IDENTIFYING_MAX      16384u /* of all senders together */

/* Larger calls are refused, because a call may have to be kept. */
#define MESSAGE_SIZE_MAX (2u * 1024u * 1024u)

/* Installs the filter. libsystemd runs the filter that was added last first, so filters that need
 * the sender are added before this one. gone is called when a peer has left, after its requests
 * have ended. */
int scheduler_new(Context *context, void (*gone)(void *userdata, Peer *peer), void *userdata,
                  Scheduler **ret);
Scheduler *scheduler_free(Scheduler *s);
