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

/* Recent service time of users that are not queued, and how much of it is forgotten in a second. */
#define SCHEDULER_FREE_USEC (20 * USEC_PER_MSEC)
#define SCHEDULER_PER_SEC   (250 * USEC_PER_MSEC)

/* A call that takes this long is expensive. Users with SCHEDULER_REST_USEC of recent service time
 * are not served for SCHEDULER_REST times as long as their expensive call took. */
#define SCHEDULER_COSTLY_USEC 500u
#define SCHEDULER_REST_USEC   (100 * USEC_PER_MSEC)
#define SCHEDULER_REST        2u

/* Messages that are read at most before a queue is served. */
#define SCHEDULER_READ_MAX 32u

/* Messages of ours that the bus has not taken yet: from the first number on no queue is served,
 * from the second on refusals are not sent either. libsystemd closes the connection at 393,216. Nor
 * is a queue served when the bus has been behind for that time: messages may be large, and a bus
 * that has stopped reading leaves them in the socket. */
#define SCHEDULER_UNSENT_MAX  32768u
#define SCHEDULER_REFUSED_MAX 131072u
#define SCHEDULER_UNSENT_USEC USEC_PER_SEC

/* So many bytes in our socket, as the kernel counts them, are too many: it takes about 200 KiB. */
#define SCHEDULER_SOCKET_BYTES (64 * 1024)

#define IDENTIFYING_PEER_MAX 128u   /* calls of one sender: the bus lets it await 128 replies */
#define IDENTIFYING_MAX      16384u /* of all senders together */

/* Larger calls are refused: a call may have to be kept. */
#define MESSAGE_SIZE_MAX (2u * 1024u * 1024u)

/* Installs the filter. libsystemd runs the filter that was added last first, so this comes after
 * all filters that want to know the sender. gone is called when a peer has left, after its requests
 * were forgotten. */
int scheduler_new(Context *context, void (*gone)(void *userdata, Peer *peer), void *userdata,
                  Scheduler **ret);
Scheduler *scheduler_free(Scheduler *s);
