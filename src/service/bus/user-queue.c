/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "user-queue.h"

#include "core/clock.h"
#include "service/bus/message-size.h"

#define IDLE_MAX 256u

/* ---- users ---- */

static UserQueue *list_find(const struct UserQueueList *list, uid_t uid) {
        UserQueue *u;

        TAILQ_FOREACH (u, list, users)
                if (u->uid == uid)
                        break;
        return u;
}

static void idle_remove(UserQueues *all, UserQueue *u) {
        TAILQ_REMOVE(&all->idle, u, users);
        all->n_idle--;
}

static void idle_forget(UserQueues *all, UserQueue *u) {
        idle_remove(all, u);
        if (all->current == u)
                all->current = NULL;
        free(u);
}

static void idle_add(UserQueues *all, UserQueue *u) {
        TAILQ_INSERT_HEAD(&all->idle, u, users);
        all->n_idle++;
        while (all->n_idle > IDLE_MAX)
                idle_forget(all, TAILQ_LAST(&all->idle, UserQueueList));
}

void user_queues_init(UserQueues *all, Context *context) {
        *all = (UserQueues){ .context = context };
        TAILQ_INIT(&all->waiting);
        TAILQ_INIT(&all->idle);
}

void user_queues_done(UserQueues *all) {
        while (!TAILQ_EMPTY(&all->idle))
                idle_forget(all, TAILQ_FIRST(&all->idle));
}

UserQueue *user_queues_get(UserQueues *all, uid_t uid) {
        UserQueue *u = list_find(&all->idle, uid) ?: list_find(&all->waiting, uid);

        if (u)
                return u;
        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;
        u->all = all;
        u->uid = uid;
        TAILQ_INIT(&u->requests);
        idle_add(all, u);
        return u;
}

/* ---- what calls cost ---- */

static uint64_t user_queue_used(UserQueue *u, uint64_t now) {
        return rate_use_now(&u->used, now, USER_QUEUE_PER_SEC);
}

bool user_queue_is_free(UserQueue *u) {
        if (!TAILQ_EMPTY(&u->requests))
                return false;
        return u->uid == 0 || user_queue_used(u, now_usec(CLOCK_MONOTONIC)) < USER_QUEUE_FREE_USEC;
}

void user_queue_begin(UserQueue *u) {
        UserQueues *all = u->all;

        all->current = u;
        all->since_usec = now_usec(CLOCK_MONOTONIC);
        all->context->called_usec = all->since_usec;
}

void user_queues_charge(UserQueues *all) {
        UserQueue *u = all->current;
        uint64_t now, cost;

        if (!u)
                return;
        all->current = NULL;
        now = now_usec(CLOCK_MONOTONIC);
        cost = MIN(now - all->since_usec, USER_QUEUE_COST_MAX_USEC);
        u->used.used = user_queue_used(u, now) + cost;
        if (cost >= USER_QUEUE_COSTLY_USEC && u->used.used >= USER_QUEUE_PAUSE_USEC)
                u->paused_until_usec = now + USER_QUEUE_PAUSE * cost;
}

/* ---- queues ---- */

static void request_unqueue(Request *r) {
        UserQueue *u = r->user;

        TAILQ_REMOVE(&u->requests, r, queue);
        r->user = NULL;
        r->unqueue = NULL;
        quota_release(&r->queued);
        quota_release(&r->queued_bytes);
        if (TAILQ_EMPTY(&u->requests)) {
                TAILQ_REMOVE(&u->all->waiting, u, users);
                idle_add(u->all, u);
        }
}

static int request_charge(Request *r, Refusal *why) {
        Quota *quota = &r->context->quota;
        uint64_t size;
        int error = message_size(r->m, MESSAGE_SIZE_MAX, &size, why);

        if (error == 0)
                error = quota_charge(quota, r->peer->uid, QUOTA_QUEUED, 1, &r->queued, why);
        if (error == 0)
                error = quota_charge(quota, r->peer->uid, QUOTA_QUEUED_BYTES, size,
                                     &r->queued_bytes, why);
        return error;
}

int user_queue_add(UserQueue *u, Request *r, Refusal *why) {
        int error = request_charge(r, why);

        if (error != 0) {
                quota_release(&r->queued);
                return error;
        }
        request_set_state(r, REQUEST_QUEUED);
        if (TAILQ_EMPTY(&u->requests)) {
                idle_remove(u->all, u);
                TAILQ_INSERT_TAIL(&u->all->waiting, u, users);
        }
        TAILQ_INSERT_TAIL(&u->requests, r, queue);
        r->user = u;
        r->unqueue = request_unqueue;
        return 0;
}

UserQueue *user_queues_next(UserQueues *all, uint64_t now, uint64_t *ret_usec) {
        UserQueue *u;

        *ret_usec = UINT64_MAX;
        TAILQ_FOREACH (u, &all->waiting, users) {
                if (u->paused_until_usec <= now)
                        break;
                *ret_usec = MIN(*ret_usec, u->paused_until_usec);
        }
        return u;
}

void user_queue_serve(UserQueue *u) {
        Request *r = TAILQ_FIRST(&u->requests);

        TAILQ_REMOVE(&u->all->waiting, u, users);
        TAILQ_INSERT_TAIL(&u->all->waiting, u, users);
        r->scheduled = true;
        request_resume(r);
}
