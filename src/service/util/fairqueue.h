/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whose turn it is: a line in front of something scarce that is fair between users.
 *
 * Each user has a line of his own, first come, first served; the users take turns. At most user_max
 * items of one user and total_max of all are under way at once. Items live in their owner's
 * structures.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "core/util.h"

typedef struct FairItem FairItem;
typedef struct FairUser FairUser;
typedef struct FairQueue FairQueue;

enum {
        FAIRQUEUE_FULL = 1, /* the user has waiting_max items in his line already */
};

struct FairItem {
        FairUser *user; /* NULL: in no line */
        bool running, slow;
        TAILQ_ENTRY(FairItem) entry;
};

/* Known while he has an item here. */
struct FairUser {
        uid_t uid;
        unsigned n_waiting;
        unsigned n_running; /* n_slow of them are slow */
        unsigned n_slow;
        TAILQ_HEAD(, FairItem) line;
        TAILQ_ENTRY(FairUser) turn; /* while somebody is in his line */
};

struct FairQueue {
        unsigned user_max;
        unsigned quick_max; /* of those, so many that are not slow; user_max at first */
        unsigned total_max;
        unsigned waiting_max;
        unsigned n_running;
        void *users; /* tree of FairUser by uid */
        TAILQ_HEAD(, FairUser) turns;
};

void fairqueue_init(FairQueue *q, unsigned user_max, unsigned total_max, unsigned waiting_max);

/* Puts a new item at the end of its user's line. FAIRQUEUE_FULL, -ENOMEM. Or at its head, for who
 * has stood in line before; there is always room for that. */
int fairqueue_add(FairQueue *q, FairItem *item, uid_t uid);
int fairqueue_add_first(FairQueue *q, FairItem *item, uid_t uid);

/* The next that may start, now under way; NULL when nobody may. */
FairItem *fairqueue_next(FairQueue *q);

/* An item that is under way takes its time: its user may have another one beside it. */
void fairqueue_slow(FairItem *item);

/* An item that is under way goes back to the head of its user's line. */
void fairqueue_return(FairQueue *q, FairItem *item);

/* Done or given up, whether it waited or was under way; fine for an item that is in no line. */
void fairqueue_remove(FairQueue *q, FairItem *item);
