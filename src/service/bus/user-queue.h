/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The queues of calls, one for each user, and what the calls of each user have cost recently.
 */

#include "service/bus/request.h"
#include "service/util/rate-limit.h"

typedef struct UserQueues UserQueues;

/* Recent service time of users that are not queued, and how much of it is forgotten in a second. */
#define USER_QUEUE_FREE_USEC (20 * USEC_PER_MSEC)
#define USER_QUEUE_PER_SEC   (250 * USEC_PER_MSEC)

/* A call that takes this long is expensive. Users with USER_QUEUE_REST_USEC of recent service time
 * are not served for USER_QUEUE_REST times as long as their expensive call took. */
#define USER_QUEUE_COSTLY_USEC 500u
#define USER_QUEUE_REST_USEC   (100 * USEC_PER_MSEC)
#define USER_QUEUE_REST        2u

struct UserQueue {
        UserQueues *all;
        uid_t uid;
        struct RequestList requests;
        RateUse used;              /* µs of the loop's time */
        uint64_t rests_until_usec; /* not served before: CLOCK_MONOTONIC, as all times here */
        TAILQ_ENTRY(UserQueue) users;
};

TAILQ_HEAD(UserQueueList, UserQueue);

struct UserQueues {
        Context *context;
        struct UserQueueList waiting; /* who has calls queued, in the order of their turns */
        struct UserQueueList others;  /* whose use is remembered, the latest one first */
        size_t n_others;
        UserQueue *current; /* whose call is being handled */
        uint64_t since_usec;
};

void user_queues_init(UserQueues *all, Context *context);
void user_queues_done(UserQueues *all); /* all are empty */

/* NULL: no memory. */
UserQueue *user_queues_get(UserQueues *all, uid_t uid);

/* The next who may be served, or NULL: then *ret_usec is when somebody may. */
UserQueue *user_queues_next(UserQueues *all, uint64_t now_usec, uint64_t *ret_usec);

/* Whether the user's calls are handled as they come. */
bool user_queue_is_free(UserQueue *u);

/* REFUSAL_*: the user has too many queued. */
int user_queue_add(UserQueue *u, Request *r, Refusal *why);

/* The first in the queue gets its turn, and its user is the last then. */
void user_queue_serve(UserQueue *u);

/* From here on a call of the user is handled; until now one was. */
void user_queue_begin(UserQueue *u);
void user_queues_charge(UserQueues *all);
