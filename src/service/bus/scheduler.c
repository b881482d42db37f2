/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scheduler.h"

#include "core/clock.h"
#include "service/bus/delivery.h"
#include "service/bus/message-size.h"
#include "service/bus/unsent.h"
#include "service/bus/user-queue.h"
#include "service/util/reply.h"

struct Scheduler {
        Context *context;
        void (*gone)(void *userdata, Peer *peer);
        void *userdata;
        UserQueues queues;
        Unsent unsent;
        bool has_turn;   /* what is being handled was resumed for a slice */
        unsigned n_read; /* messages since a queue was served */
        Turn serve;
        sd_event_source *clock; /* when a user may be served again */
        sd_bus_slot *filter;
};

/* ---- queues ---- */

/* Serves one user, now or when one may be served. */
static void scheduler_serve(void *userdata) {
        Scheduler *s = userdata;
        uint64_t now = now_usec(CLOCK_MONOTONIC), next = UINT64_MAX;
        bool stuck = unsent_is_stuck(&s->unsent);
        UserQueue *u = stuck ? NULL : user_queues_next(&s->queues, now, &next);

        if (u) {
                user_queue_serve(u);
                s->n_read = 0;
        } else if (stuck)
                next = now + USEC_PER_SEC / 10;
        (void) sd_event_source_set_time(s->clock, u ? UINT64_MAX : next);
        if (u && !TAILQ_EMPTY(&s->queues.waiting))
                turn_wait(&s->serve);
}

static int scheduler_pause_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Scheduler *s = userdata;

        (void) sd_event_source_set_time(source, UINT64_MAX);
        if (!TAILQ_EMPTY(&s->queues.waiting))
                scheduler_serve(s);
        return 0;
}

/* The handler of the last message has returned. */
static void scheduler_settle(Scheduler *s) {
        user_queues_charge(&s->queues);
        requests_settle(s->context->requests);
        if (s->has_turn)
                turns_rest(&s->context->turns);
        s->has_turn = false;
}

/* Before each iteration of the loop. */
static int scheduler_prepare(sd_event_source *source, void *userdata) {
        Scheduler *s = userdata;

        scheduler_settle(s);
        unsent_watch(&s->unsent);
        turns_prepare(&s->context->turns);
        return 0;
}

/* ---- calls that arrive ---- */

/* Refuses the call, unless no reply is expected or too many are unsent. */
static int scheduler_refuse(Scheduler *s, sd_bus_message *m, int r, const Refusal *why,
                            sd_bus_error *error) {
        if (sd_bus_message_get_expect_reply(m) == 0 || unsent_n(&s->unsent) >= UNSENT_REFUSED_MAX)
                return 1;
        return reply_failure(r, why, error);
}

/* The next handler is called for this peer. Returns what the filter returns. */
static int scheduler_deliver(Scheduler *s, UserQueue *u, Peer *peer) {
        peers_set_current(s->context->peers, peer);
        if (u)
                user_queue_begin(u);
        return 0;
}

/* A call of an identified sender that has not been scheduled yet. r is NULL for a new call. */
static int scheduler_schedule(Scheduler *s, Peer *peer, sd_bus_message *m, Request *r,
                              sd_bus_error *error) {
        UserQueue *u = user_queues_get(&s->queues, peer->uid);
        Refusal why = REFUSAL_NULL;
        int e = u ? 0 : -ENOMEM;

        if (u && user_queue_is_free(u) && !unsent_is_stuck(&s->unsent))
                return scheduler_deliver(s, u, peer);
        if (e == 0 && !r)
                e = request_new(s->context, peer, m, REQUEST_RUNNING, &r);
        if (e == 0)
                e = user_queue_add(u, r, &why);
        if (e != 0)
                return scheduler_refuse(s, m, e, &why, error);
        turn_wait(&s->serve);
        if (++s->n_read >= SCHEDULER_READ_MAX)
                scheduler_serve(s);
        return 1;
}

/* The message of a request has come back from the bus's queue. */
static int scheduler_resume(Scheduler *s, Request *r, sd_bus_error *error) {
        request_set_state(r, REQUEST_RUNNING);
        s->has_turn = r->has_turn;
        r->has_turn = false;
        if (!r->scheduled) {
                r->scheduled = true;
                return scheduler_schedule(s, r->peer, r->m, r, error);
        }
        return scheduler_deliver(s, user_queues_get(&s->queues, r->peer->uid), r->peer);
}

/* Comes first: a larger message is not kept anywhere. */
static int scheduler_check_size(sd_bus_message *m, Refusal *why) {
        uint64_t size;
        int r = message_size(m, MESSAGE_SIZE_MAX, &size, why);

        if (r != 0 || size <= MESSAGE_SIZE_MAX)
                return r;
        return refuse(why, REFUSAL_LIMITS_EXCEEDED,
                      "the call is larger than %u bytes, as much as one may be", MESSAGE_SIZE_MAX);
}

/* Keeps the call until the bus has identified its sender. */
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
                                         : "the bus does not report the caller");
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

        r = sd_event_add_time(event, &s->clock, CLOCK_MONOTONIC, UINT64_MAX, 1000,
                              scheduler_pause_over, s);
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
        *s = (Scheduler){
                .context = context, .gone = gone, .userdata = userdata, .unsent.bus = context->bus
        };
        user_queues_init(&s->queues, context);
        turn_init(&s->serve, &context->turns, scheduler_serve, s);
        r = requests_new(context, &context->requests);
        if (r >= 0)
                r = peers_new(context->bus, context->reader, &hooks, s, &context->peers);
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
        if (!s)
                return NULL;
        sd_bus_slot_unref(s->filter);
        requests_end(s->context->requests);
        user_queues_done(&s->queues);
        s->context->delivery = delivery_free(s->context->delivery);
        s->context->peers = peers_free(s->context->peers);
        s->context->requests = requests_free(s->context->requests);
        turn_done(&s->serve);
        sd_event_source_disable_unref(s->clock);
        free(s);
        return NULL;
}
