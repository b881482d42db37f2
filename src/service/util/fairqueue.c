/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fairqueue.h"

#include <search.h>

static int user_compare(const void *a, const void *b) {
        uid_t x = ((const FairUser *) a)->uid, y = ((const FairUser *) b)->uid;

        return (x > y) - (x < y);
}

void fairqueue_init(FairQueue *q, unsigned user_max, unsigned total_max, unsigned waiting_max) {
        *q = (FairQueue){
                .user_max = user_max,
                .quick_max = user_max,
                .total_max = total_max,
                .waiting_max = waiting_max,
        };
        TAILQ_INIT(&q->turns);
}

static FairUser *user_get(FairQueue *q, uid_t uid) {
        FairUser **found, *user;

        found = tfind(&(FairUser){ .uid = uid }, &q->users, user_compare);
        if (found)
                return *found;

        user = calloc(1, sizeof(*user));
        if (!user)
                return NULL;
        user->uid = uid;
        TAILQ_INIT(&user->queue);
        if (!tsearch(user, &q->users, user_compare)) {
                free(user);
                return NULL;
        }
        return user;
}

static void user_forget(FairQueue *q, FairUser *user) {
        if (user->n_waiting > 0 || user->n_running > 0)
                return;
        (void) tdelete(user, &q->users, user_compare);
        free(user);
}

static void user_enqueue(FairQueue *q, FairUser *user, FairItem *item, bool first) {
        if (user->n_waiting++ == 0)
                TAILQ_INSERT_TAIL(&q->turns, user, turn);
        if (first)
                TAILQ_INSERT_HEAD(&user->queue, item, entry);
        else
                TAILQ_INSERT_TAIL(&user->queue, item, entry);
}

static void user_dequeue(FairQueue *q, FairUser *user, FairItem *item) {
        TAILQ_REMOVE(&user->queue, item, entry);
        if (--user->n_waiting == 0)
                TAILQ_REMOVE(&q->turns, user, turn);
}

static int queue_admit(FairQueue *q, FairItem *item, uid_t uid, bool first) {
        FairUser *user;

        user = user_get(q, uid);
        if (!user)
                return -ENOMEM;
        if (!first && user->n_waiting >= q->waiting_max) {
                user_forget(q, user);
                return FAIRQUEUE_FULL;
        }

        *item = (FairItem){ .user = user };
        user_enqueue(q, user, item, first);
        return 0;
}

int fairqueue_add(FairQueue *q, FairItem *item, uid_t uid) {
        return queue_admit(q, item, uid, false);
}

int fairqueue_add_first(FairQueue *q, FairItem *item, uid_t uid) {
        return queue_admit(q, item, uid, true);
}

FairItem *fairqueue_next(FairQueue *q) {
        FairUser *user;
        FairItem *item;

        if (q->n_running >= q->total_max)
                return NULL;

        TAILQ_FOREACH (user, &q->turns, turn)
                if (user->n_running < q->user_max && user->n_running - user->n_slow < q->quick_max)
                        break;
        if (!user)
                return NULL;

        item = TAILQ_FIRST(&user->queue);
        user_dequeue(q, user, item);
        if (user->n_waiting > 0) { /* the turns of other users come first */
                TAILQ_REMOVE(&q->turns, user, turn);
                TAILQ_INSERT_TAIL(&q->turns, user, turn);
        }
        item->running = true;
        user->n_running++;
        q->n_running++;
        return item;
}

static void item_stop(FairQueue *q, FairItem *item) {
        item->running = false;
        item->user->n_slow -= item->slow;
        item->slow = false;
        item->user->n_running--;
        q->n_running--;
}

void fairqueue_slow(FairItem *item) {
        if (!item->running || item->slow)
                return;
        item->slow = true;
        item->user->n_slow++;
}

void fairqueue_return(FairQueue *q, FairItem *item) {
        item_stop(q, item);
        user_enqueue(q, item->user, item, true);
}

void fairqueue_remove(FairQueue *q, FairItem *item) {
        FairUser *user = item->user;

        if (!user)
                return;
        if (item->running)
                item_stop(q, item);
        else
                user_dequeue(q, user, item);
        item->user = NULL;
        user_forget(q, user);
}
