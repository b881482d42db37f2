/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scheduler.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "core/clock.h"
#include "service/bus/delivery.h"
#include "service/bus/message-size.h"
#include "service/util/log.h"
#include "service/util/rate-limit.h"
#include "service/util/reply.h"

struct SchedulerUser {
        Scheduler *scheduler;
        uid_t uid;
        struct RequestList queue;
        RateUse used;              /* µs of the loop's time */
        uint64_t rests_until_usec; /* not served before: CLOCK_MONOTONIC, as all times here */
        TAILQ_ENTRY(SchedulerUser) users;
};

TAILQ_HEAD(SchedulerUserList, SchedulerUser);

struct Scheduler {
        Context *context;
        void (*gone)(void *userdata, Peer *peer);
        void *userdata;
        struct SchedulerUserList waiting; /* who has a queue, in the order of their turns */
        struct SchedulerUserList others;  /* whose use is remembered, the latest one first */
        size_t n_others;
        unsigned n_read;        /* since a queue was served */
        SchedulerUser *current; /* whose call is being handled */
        uint64_t since_usec;
        sd_event_source *serve; /* when there is nothing else to do */
        sd_event_source *clock; /* when somebody has rested */
        uint64_t unsent_usec;   /* since when the bus has not taken all that we send; 0: it has */
        bool said;              /* that it does not */
        sd_bus_slot *filter;
};

#define OTHERS_MAX 256u

/* ---- users ---- */

static SchedulerUser *list_find(const struct SchedulerUserList *list, uid_t uid) {
        SchedulerUser *u;

        TAILQ_FOREACH (u, list, users)
                if (u->uid == uid)
                        break;
        return u;
}

static void user_free(Scheduler *s, SchedulerUser *u) {
        if (s->current == u)
                s->current = NULL;
        free(u);
}

static void others_trim(Scheduler *s) {
        while (s->n_others > OTHERS_MAX) {
                SchedulerUser *u = TAILQ_LAST(&s->others, SchedulerUserList);

                TAILQ_REMOVE(&s->others, u, users);
                s->n_others--;
                user_free(s, u);
        }
}

static void others_add(Scheduler *s, SchedulerUser *u) {
        TAILQ_INSERT_HEAD(&s->others, u, users);
        s->n_others++;
        others_trim(s);
}

/* NULL: no memory. */
static SchedulerUser *user_get(Scheduler *s, uid_t uid) {
        SchedulerUser *u = list_find(&s->others, uid) ?: list_find(&s->waiting, uid);

        if (u)
                return u;
        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;
        u->scheduler = s;
        u->uid = uid;
        TAILQ_INIT(&u->queue);
        others_add(s, u);
        return u;
}

static uint64_t user_used(SchedulerUser *u, uint64_t now) {
        return rate_use_now(&u->used, now, SCHEDULER_PER_SEC);
}

/* ---- what calls cost ---- */

static void user_begin(Scheduler *s, SchedulerUser *u) {
        s->current = u;
        s->since_usec = now_usec(CLOCK_MONOTONIC);
        s->context->called_usec = s->since_usec;
}

/* The call has been handled. */
static void scheduler_charge(Scheduler *s) {
        SchedulerUser *u = s->current;
        uint64_t now, cost;

        if (!u)
                return;
        s->current = NULL;
        now = now_usec(CLOCK_MONOTONIC);
        cost = now - s->since_usec;
        u->used.used = user_used(u, now) + cost;
        if (cost >= SCHEDULER_COSTLY_USEC && u->used.used >= SCHEDULER_REST_USEC)
                u->rests_until_usec = now + SCHEDULER_REST * cost;
}

/* ---- queues ---- */

static void request_unqueue(Request *r) {
        SchedulerUser *u = r->user;

        TAILQ_REMOVE(&u->queue, r, queue);
        r->user = NULL;
        r->unqueue = NULL;
        quota_release(&r->queued);
        quota_release(&r->queued_bytes);
        if (TAILQ_EMPTY(&u->queue)) {
                TAILQ_REMOVE(&u->scheduler->waiting, u, users);
                others_add(u->scheduler, u);
        }
}

static int request_charge(Request *r, Refusal *why) {
        Quota *quota = &r->context->quota;
        uint64_t size;
        int error = message_size(r->m, MESSAGE_SIZE_MAX, &size);

        if (error >= 0)
                error = quota_charge(quota, r->peer->uid, QUOTA_QUEUED, 1, &r->queued, why);
        if (error == 0)
                error = quota_charge(quota, r->peer->uid, QUOTA_QUEUED_BYTES, size,
                                     &r->queued_bytes, why);
        return error;
}

static int request_queue(Scheduler *s, Request *r, SchedulerUser *u, Refusal *why) {
        int error = request_charge(r, why);

        if (error != 0) {
                quota_release(&r->queued);
                return error;
        }
        request_set_state(r, REQUEST_QUEUED);
        if (TAILQ_EMPTY(&u->queue)) {
                TAILQ_REMOVE(&s->others, u, users);
                s->n_others--;
                TAILQ_INSERT_TAIL(&s->waiting, u, users);
        }
        TAILQ_INSERT_TAIL(&u->queue, r, queue);
        r->user = u;
        r->unqueue = request_unqueue;
        return 0;
}

/* The next who may be served; otherwise when somebody may. */
static SchedulerUser *scheduler_next(Scheduler *s, uint64_t now, uint64_t *ret_usec) {
        SchedulerUser *u;

        *ret_usec = UINT64_MAX;
        TAILQ_FOREACH (u, &s->waiting, users) {
                if (u->rests_until_usec <= now)
                        break;
                *ret_usec = MIN(*ret_usec, u->rests_until_usec);
        }
        return u;
}

/* The first in the queue gets its turn, and its user is the last then. */
static void user_serve(Scheduler *s, SchedulerUser *u) {
        Request *r = TAILQ_FIRST(&u->queue);

        TAILQ_REMOVE(&s->waiting, u, users);
        TAILQ_INSERT_TAIL(&s->waiting, u, users);
        r->scheduled = true;
        request_resume(r);
        s->n_read = 0;
}

static uint64_t scheduler_n_unsent(const Scheduler *s) {
        uint64_t n = 0;

        (void) sd_bus_get_n_queued_write(s->context->bus, &n);
        return n;
}

/* Whether the bus is behind with reading. libsystemd's queue is empty as long as the socket has
 * room; what was written a moment ago lies in the socket too. */
static bool scheduler_is_behind(const Scheduler *s) {
        int n = 0;

        (void) ioctl(sd_bus_get_fd(s->context->bus), SIOCOUTQ, &n);
        return scheduler_n_unsent(s) > 0 || n >= SCHEDULER_SOCKET_BYTES;
}

/* Since when the bus has always been behind. */
static void scheduler_watch_unsent(Scheduler *s) {
        if (scheduler_is_behind(s)) {
                s->unsent_usec = s->unsent_usec ?: now_usec(CLOCK_MONOTONIC);
                return;
        }
        if (s->said)
                log_plain(LOG_NOTICE, "The bus takes what the service sends again.");
        s->unsent_usec = 0;
        s->said = false;
}

/* Whether the bus does not take what we send. That it lasts is said once, until it is over. */
static bool scheduler_is_stuck(Scheduler *s) {
        bool lasts;

        scheduler_watch_unsent(s);
        lasts = s->unsent_usec > 0 &&
                now_usec(CLOCK_MONOTONIC) - s->unsent_usec >= SCHEDULER_UNSENT_USEC;
        if (lasts && !s->said) {
                s->said = true;
                log_event(LOG_WARNING, LOG_ID_DEGRADED,
                          "The bus does not take what the service sends: some client does not read "
                          "its answers (see perfallocd(8)). Calls wait until it does.",
                          NULL);
        }
        return lasts || scheduler_n_unsent(s) >= SCHEDULER_UNSENT_MAX;
}

/* A user gets their turn, now or when they may. */
static void scheduler_serve(Scheduler *s) {
        uint64_t now = now_usec(CLOCK_MONOTONIC), next = UINT64_MAX;
        bool stuck = scheduler_is_stuck(s);
        SchedulerUser *u = stuck ? NULL : scheduler_next(s, now, &next);

        if (u)
                user_serve(s, u);
        else if (stuck)
                next = now + USEC_PER_SEC / 10;
        (void) sd_event_source_set_time(s->clock, u ? UINT64_MAX : next);
        (void) sd_event_source_set_enabled(s->serve, u && !TAILQ_EMPTY(&s->waiting) ? SD_EVENT_ON
                                                                                    : SD_EVENT_OFF);
}

static int scheduler_have_time(sd_event_source *source, void *userdata) {
        scheduler_serve(userdata);
        return 0;
}

static int scheduler_rested(sd_event_source *source, uint64_t usec, void *userdata) {
        Scheduler *s = userdata;

        (void) sd_event_source_set_time(source, UINT64_MAX);
        if (!TAILQ_EMPTY(&s->waiting))
                scheduler_serve(s);
        return 0;
}

/* The handler of the last message has returned. */
static void scheduler_settle(Scheduler *s) {
        scheduler_charge(s);
        requests_settle(s->context->requests);
}

/* Before each iteration of the loop. */
static int scheduler_prepare(sd_event_source *source, void *userdata) {
        scheduler_settle(userdata);
        scheduler_watch_unsent(userdata);
        return 0;
}

/* ---- calls that arrive ---- */

/* The call is refused, unless nobody would hear it. */
static int scheduler_refuse(Scheduler *s, sd_bus_message *m, int r, const Refusal *why,
                            sd_bus_error *error) {
        if (sd_bus_message_get_expect_reply(m) == 0 ||
            scheduler_n_unsent(s) >= SCHEDULER_REFUSED_MAX)
                return 1;
        return reply_failure(r, why, error);
}

static bool user_may_go_ahead(Scheduler *s, SchedulerUser *u) {
        if (!TAILQ_EMPTY(&u->queue) || scheduler_is_stuck(s))
                return false;
        return u->uid == 0 || user_used(u, now_usec(CLOCK_MONOTONIC)) < SCHEDULER_FREE_USEC;
}

/* The next handler is called for this peer. Returns what the filter returns. */
static int scheduler_deliver(Scheduler *s, SchedulerUser *u, Peer *peer) {
        peers_set_current(s->context->peers, peer);
        if (u)
                user_begin(s, u);
        return 0;
}

/* A call of a known sender that has not had its turn: r is NULL for one that has just come. */
static int scheduler_schedule(Scheduler *s, Peer *peer, sd_bus_message *m, Request *r,
                              sd_bus_error *error) {
        SchedulerUser *u = user_get(s, peer->uid);
        Refusal why = REFUSAL_NULL;
        int e = u ? 0 : -ENOMEM;

        if (u && user_may_go_ahead(s, u))
                return scheduler_deliver(s, u, peer);
        if (e == 0 && !r)
                e = request_new(s->context, peer, m, REQUEST_RUNNING, &r);
        if (e == 0)
                e = request_queue(s, r, u, &why);
        if (e != 0)
                return scheduler_refuse(s, m, e, &why, error);
        (void) sd_event_source_set_enabled(s->serve, SD_EVENT_ON);
        if (++s->n_read >= SCHEDULER_READ_MAX)
                scheduler_serve(s);
        return 1;
}

/* A message that comes back. */
static int scheduler_resume(Scheduler *s, Request *r, sd_bus_error *error) {
        request_set_state(r, REQUEST_RUNNING);
        if (!r->scheduled) {
                r->scheduled = true;
                return scheduler_schedule(s, r->peer, r->m, r, error);
        }
        return scheduler_deliver(s, user_get(s, r->peer->uid), r->peer);
}

/* Before anything remembers it. */
static int scheduler_check_size(sd_bus_message *m, Refusal *why) {
        uint64_t size;
        int r = message_size(m, MESSAGE_SIZE_MAX, &size);

        if (r < 0 || size <= MESSAGE_SIZE_MAX)
                return r;
        return refuse(why, REFUSAL_LIMITS_EXCEEDED,
                      "the call is larger than %u bytes, as much as one may be", MESSAGE_SIZE_MAX);
}

/* Until the bus has said who the sender is. */
static int scheduler_identify(Scheduler *s, Peer *peer, sd_bus_message *m, sd_bus_error *error) {
        const Requests *all = s->context->requests;
        const Request *other;
        unsigned n = 0;
        Request *r;
        int e;

        TAILQ_FOREACH (other, &peer->requests, of_peer)
                n++;
        if (n >= IDENTIFYING_PEER_MAX || requests_n(all, REQUEST_IDENTIFYING) >= IDENTIFYING_MAX)
                return sd_bus_error_setf(
                        error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "more calls at once than can wait until the bus has said who "
                        "is calling (%u of one connection, %u of all): send fewer",
                        IDENTIFYING_PEER_MAX, IDENTIFYING_MAX);
        e = request_new(s->context, peer, m, REQUEST_IDENTIFYING, &r);
        if (e < 0)
                return e;
        context_touch(s->context);
        return 1;
}

static int scheduler_receive(Scheduler *s, sd_bus_message *m, sd_bus_error *error) {
        const char *name = sd_bus_message_get_sender(m);
        Refusal why = REFUSAL_NULL;
        Peer *peer;
        int r = scheduler_check_size(m, &why);

        if (r != 0)
                return scheduler_refuse(s, m, r, &why, error);
        if (!name)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED,
                                        "a call without a sender: not from a bus");
        r = peers_get(s->context->peers, name, &peer);
        if (r < 0)
                return r;
        return peer->known ? scheduler_schedule(s, peer, m, NULL, error)
                           : scheduler_identify(s, peer, m, error);
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Scheduler *s = userdata;
        Request *r;

        scheduler_settle(s);
        if (!sd_bus_message_is_method_call(m, NULL, NULL))
                return 0;
        r = request_find(s->context->requests, m);
        return r ? scheduler_resume(s, r, error) : scheduler_receive(s, m, error);
}

/* ---- peers ---- */

static void peer_known(void *userdata, Peer *peer, int error) {
        Request *r, *next;

        for (r = TAILQ_FIRST(&peer->requests); r; r = next) {
                next = TAILQ_NEXT(r, of_peer);
                if (r->state != REQUEST_IDENTIFYING)
                        continue;
                if (error == 0) {
                        request_resume(r);
                        continue;
                }
                (void) sd_bus_reply_method_errorf(
                        r->m,
                        error == -ENOMEM ? SD_BUS_ERROR_NO_MEMORY : SD_BUS_ERROR_ACCESS_DENIED,
                        "%s",
                        error == -ENOMEM ? "the service is out of memory"
                                         : "the bus does not tell who is calling");
                request_free(r);
        }
}

static void peer_gone(void *userdata, Peer *peer) {
        Scheduler *s = userdata;

        requests_forget_peer(peer);
        delivery_forget_peer(s->context->delivery, peer);
        s->gone(s->userdata, peer);
}

/* ---- start and end ---- */

static int scheduler_add_sources(Scheduler *s) {
        sd_event *event = s->context->event;
        int r;

        r = sd_event_add_defer(event, &s->serve, scheduler_have_time, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->serve, SD_EVENT_OFF);
        if (r >= 0) /* what has come on the bus is read first */
                r = sd_event_source_set_priority(s->serve, SD_EVENT_PRIORITY_NORMAL + 1);
        if (r >= 0)
                r = sd_event_add_time(event, &s->clock, CLOCK_MONOTONIC, UINT64_MAX, 1000,
                                      scheduler_rested, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->clock, SD_EVENT_ON);
        if (r >= 0)
                r = sd_event_source_set_prepare(s->clock, scheduler_prepare);
        return r;
}

int scheduler_new(Context *context, void (*gone)(void *userdata, Peer *peer), void *userdata,
                  Scheduler **ret) {
        static const PeersHooks hooks = { peer_known, peer_gone };
        Scheduler *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->context = context;
        s->gone = gone;
        s->userdata = userdata;
        TAILQ_INIT(&s->waiting);
        TAILQ_INIT(&s->others);
        r = requests_new(context, &context->requests);
        if (r >= 0)
                r = peers_new(context->bus, &hooks, s, &context->peers);
        if (r >= 0)
                r = delivery_new(context, &context->delivery);
        if (r >= 0)
                r = scheduler_add_sources(s);
        if (r >= 0)
                r = sd_bus_add_filter(context->bus, &s->filter, on_message, s);
        if (r < 0) {
                scheduler_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

Scheduler *scheduler_free(Scheduler *s) {
        SchedulerUser *u;

        if (!s)
                return NULL;
        sd_bus_slot_unref(s->filter);
        requests_end(s->context->requests);
        while ((u = TAILQ_FIRST(&s->others))) {
                TAILQ_REMOVE(&s->others, u, users);
                free(u);
        }
        s->context->delivery = delivery_free(s->context->delivery);
        s->context->peers = peers_free(s->context->peers);
        s->context->requests = requests_free(s->context->requests);
        sd_event_source_disable_unref(s->serve);
        sd_event_source_disable_unref(s->clock);
        free(s);
        return NULL;
}
