/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which call is handled next: the filter in front of all handlers.
 *
 * The bus delivers the calls of all users in one queue. A user with many calls, or expensive ones,
 * would delay everybody else, and the bus would fill up. So each user is charged for the time that
 * their calls keep the loop busy. Calls of users with little recent service time are handled as
 * they arrive. Other users have a queue each, and the loop reads on, so that calls behind theirs
 * are reached at once. The queues are served round-robin, in turns (turn.h), and after every
 * SCHEDULER_READ_MAX messages. After an expensive call its user is not served for a while.
 *
 * Root is never queued. No queue is served while the bus does not accept the service's messages.
 */

#include "service/bus/request.h"

typedef struct Scheduler Scheduler;

/* The number of messages that are read before a queue is served. */
#define SCHEDULER_READ_MAX 32u

#define IDENTIFYING_PEER_MAX 128u   /* calls of one sender; the bus allows it 128 pending replies */
#define IDENTIFYING_MAX      16384u /* of all senders together */

/* Installs the filter. libsystemd runs the filter that was added last first, so filters that need
 * the sender are added before this one. gone is called when a peer has left, after its requests
 * have ended. */
int scheduler_new(Context *context, void (*gone)(void *userdata, Peer *peer), void *userdata,
                  Scheduler **ret);
Scheduler *scheduler_free(Scheduler *s);
