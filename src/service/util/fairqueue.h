/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A queue for a scarce resource that is fair between users.
 *
 * Each user has a first-in, first-out queue. The users take turns; each turn starts one item. At
 * most user_max items of one user, and total_max of all users, run at once. Items are members of
 * their owner's structs.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "core/util.h"

typedef struct FairItem FairItem;
typedef struct FairUser FairUser;
typedef struct FairQueue FairQueue;

enum {
        FAIRQUEUE_FULL = 1, /* the user has waiting_max items in the queue */
};

struct FairItem {
        FairUser *user; /* NULL: neither queued nor running */
        bool running, slow;
        TAILQ_ENTRY(FairItem) entry;
};

/* Exists while the user has an item here. */
struct FairUser {
        uid_t uid;
        unsigned n_waiting;
        unsigned n_running; /* n_slow of them are slow */
        unsigned n_slow;
        TAILQ_HEAD(, FairItem) queue;
        TAILQ_ENTRY(FairUser) turn; /* while items of the user wait */
};

struct FairQueue {
        unsigned user_max;
        unsigned quick_max; /* of those, at most this many that are not slow; at first user_max */
        unsigned total_max;
        unsigned waiting_max;
        unsigned n_running;
        void *users; /* tree of FairUser by uid */
        TAILQ_HEAD(, FairUser) turns;
};

void fairqueue_init(FairQueue *q, unsigned user_max, unsigned total_max, unsigned waiting_max);

/* Adds a new item at the end of its user's queue: FAIRQUEUE_FULL, -ENOMEM. fairqueue_add_first()
 * adds the item of a caller that has waited before at the head, regardless of waiting_max. */
int fairqueue_add(FairQueue *q, FairItem *item, uid_t uid);
int fairqueue_add_first(FairQueue *q, FairItem *item, uid_t uid);

/* Starts the next item. NULL: none may start. */
FairItem *fairqueue_next(FairQueue *q);

/* A running item takes long: another one of its user may run beside it. */
void fairqueue_slow(FairItem *item);

/* A running item returns to the head of its user's queue. */
void fairqueue_return(FairQueue *q, FairItem *item);

/* The item is done or cancelled, whether queued or running. Fine for an item that is neither. */
void fairqueue_remove(FairQueue *q, FairItem *item);
