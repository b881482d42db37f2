/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which call is handled next: the filter in front of all handlers.
 *
 * The bus delivers the calls of all users in one queue. A user with many calls, or expensive ones,
 * would delay everybody else, and the bus would fill up. So a user is charged for the time that
 * their calls keep the loop busy. The calls of users with little recent service time are handled as
 * they come. Other users have a queue each, and the loop reads on, so that the calls behind theirs
 * are reached at once. The queues are served in turn when nothing else is to be read, and after
 * every SCHEDULER_READ_MAX messages. Between the expensive calls of one user the loop is left to
 * others.
 *
 * Root is never queued. No queue is served while the bus does not accept our answers.
 */

#include "service/bus/request.h"

typedef struct Scheduler Scheduler;

/* Messages that are read at most before a queue is served. */
#define SCHEDULER_READ_MAX 32u

#define IDENTIFYING_PEER_MAX 128u   /* calls of one sender: the bus lets it await 128 replies */
#define IDENTIFYING_MAX      16384u /* of all senders together */

/* Installs the filter. libsystemd runs the filter that was added last first, so this comes after
 * all filters that want to know the sender. gone is called when a peer has left, after its requests
 * were forgotten. */
int scheduler_new(Context *context, void (*gone)(void *userdata, Peer *peer), void *userdata,
                  Scheduler **ret);
Scheduler *scheduler_free(Scheduler *s);
