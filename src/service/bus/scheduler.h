/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whose call is handled next.
 *
 * The bus hands us the calls of all users one behind the other. Who sends many, or expensive ones,
 * would have everybody else wait for them, and the bus would fill up meanwhile. So a user pays for
 * the time that his calls keep the loop busy. While he has used little his calls are handled as
 * they come. Then they are put into a line of his own, and the loop reads on: so whoever stands
 * behind him in the bus's queue is reached as fast as we can read. Lines are served in turns when
 * nothing else is to be read, and now and then all the same. A user whose calls are expensive also
 * has to leave the loop in peace between them.
 *
 * Root is never put into a line. Nor is anybody served while the bus does not take our answers.
 */

#include "core/quota.h"
#include "service/bus/peer.h"

typedef struct Scheduler Scheduler;
struct Service;

#define SCHEDULER_FREE_USEC (20 * USEC_PER_MSEC) /* what one may have used and still go ahead */
#define SCHEDULER_EASE      4u                   /* so many times as long until it is forgotten */

/* From here on a call is an expensive one, and so many times as long as it took its user is not
 * served: when he has used SCHEDULER_REST_USEC. */
#define SCHEDULER_COSTLY_USEC 500u
#define SCHEDULER_REST_USEC   (100 * USEC_PER_MSEC)
#define SCHEDULER_REST        2u

/* Messages that are read at most before somebody in a line is served. */
#define SCHEDULER_READ_MAX 32u

/* Messages of ours that the bus has not taken yet, before nobody is served any more, and before
 * not even refusals are sent. libsystemd closes the connection when it has 393,216. Nor is anybody
 * served when the bus has been behind for that time: messages may be large. */
#define SCHEDULER_UNSENT_MAX  32768u
#define SCHEDULER_REFUSED_MAX 131072u
#define SCHEDULER_UNSENT_USEC USEC_PER_SEC

/* A call may not be larger: it may have to be kept. */
#define MESSAGE_SIZE_MAX (2u * 1024u * 1024u)

/* Installs filters on the bus: scheduler_new() before peers_new(), which tell whose a message is,
 * and scheduler_guard() after everything else, so that what is too large gets no further. */
int scheduler_new(struct Service *s, Scheduler **ret);
int scheduler_guard(Scheduler *t);
Scheduler *scheduler_free(Scheduler *t);

/* sd_bus_enqueue_for_read() for a message that has had its turn. */
int scheduler_again(Scheduler *t, sd_bus_message *m);

void scheduler_forget_peer(Scheduler *t, const Peer *peer);

/* Calls that stand in lines. */
size_t scheduler_n_waiting(const Scheduler *t);
