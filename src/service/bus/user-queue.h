/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The queues of calls, one for each user, and what the calls of each user have cost recently.
 */

#include "service/bus/request.h"
#include "service/util/rate-limit.h"

typedef struct UserQueues UserQueues;

/* Users below this much recent service time are not queued. USER_QUEUE_PER_SEC of it decays in a
 * second. */
#define USER_QUEUE_FREE_USEC (20 * USEC_PER_MSEC)
#define USER_QUEUE_PER_SEC   (250 * USEC_PER_MSEC)

/* A call that takes this long is expensive. A user with USER_QUEUE_PAUSE_USEC of recent service
 * time is not served for USER_QUEUE_PAUSE times as long as their expensive call took. */
#define USER_QUEUE_COSTLY_USEC 500u
#define USER_QUEUE_PAUSE_USEC  (100 * USEC_PER_MSEC)
#define USER_QUEUE_PAUSE       2u

/* No call is charged more. What took longer was not its work: the service was stopped, or had no
 * CPU. */
#define USER_QUEUE_COST_MAX_USEC USEC_PER_SEC

struct UserQueue {
        UserQueues *all;
        uid_t uid;
        struct RequestList requests;
        RateUse used;               /* µs of the loop's time */
        uint64_t paused_until_usec; /* CLOCK_MONOTONIC, as all times here: not served before */
        TAILQ_ENTRY(UserQueue) users;
};

TAILQ_HEAD(UserQueueList, UserQueue);

struct UserQueues {
        Context *context;
        struct UserQueueList waiting; /* users with a queue, in the order of service */
        struct UserQueueList idle;    /* users without one, the latest first */
        size_t n_idle;
        UserQueue *current; /* whose call is being handled */
        uint64_t since_usec;
};

void user_queues_init(UserQueues *all, Context *context);
void user_queues_done(UserQueues *all); /* all queues are empty */

/* NULL: no memory. */
UserQueue *user_queues_get(UserQueues *all, uid_t uid);

/* The next user who may be served. If there is none, *ret_usec is when there may be one. */
UserQueue *user_queues_next(UserQueues *all, uint64_t now_usec, uint64_t *ret_usec);

/* Whether the user's calls are handled as they arrive. */
bool user_queue_is_free(UserQueue *u);

/* REFUSAL_*: the user has too many calls queued. */
int user_queue_add(UserQueue *u, Request *r, Refusal *why);

/* Resumes the user's first call, and moves the user to the end of the list. */
void user_queue_serve(UserQueue *u);

/* Notes that a call of the user is handled from now on; charges the user of the last call, which
 * has been handled. */
void user_queue_begin(UserQueue *u);
void user_queues_charge(UserQueues *all);
