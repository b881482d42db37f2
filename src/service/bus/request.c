/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "request.h"

#include <search.h>

#include "core/clock.h"
#include "service/util/reply.h"

#define AGAIN_USEC (10 * USEC_PER_MSEC) /* until the bus's queue may have room */

struct Requests {
        Context *context;
        void *by_message; /* tree of Request */
        struct RequestList lists[_REQUEST_STATE_MAX];
        size_t n[_REQUEST_STATE_MAX];
        sd_event_source *again; /* retries those that are stuck */
        Turn turn;              /* resumes the first that is paused */
};

static int request_compare(const void *a, const void *b) {
        uintptr_t x = (uintptr_t) ((const Request *) a)->m,
                  y = (uintptr_t) ((const Request *) b)->m;

        return (x > y) - (x < y);
}

Request *request_find(const Requests *all, const sd_bus_message *m) {
        Request key, **found;

        if (!all->by_message)
                return NULL;
        key.m = (sd_bus_message *) (uintptr_t) m; /* compared only, never written */
        found = tfind(&key, &all->by_message, request_compare);
        return found ? *found : NULL;
}

size_t requests_n(const Requests *all, RequestState state) {
        return all->n[state];
}

bool requests_any(const Requests *all) {
        return all->by_message;
}

/* ---- one request ---- */

static void request_enlist(Request *r, RequestState state) {
        Requests *all = r->context->requests;

        r->state = state;
        TAILQ_INSERT_TAIL(&all->lists[state], r, list);
        all->n[state]++;
}

static void request_delist(Request *r) {
        Requests *all = r->context->requests;

        TAILQ_REMOVE(&all->lists[r->state], r, list);
        all->n[r->state]--;
}

void request_set_state(Request *r, RequestState state) {
        if (r->unqueue)
                r->unqueue(r);
        request_delist(r);
        request_enlist(r, state);
}

int request_new(Context *context, Peer *peer, sd_bus_message *m, RequestState state,
                Request **ret) {
        Request *r = calloc(1, sizeof(*r));

        if (!r)
                return -ENOMEM;
        r->m = m;
        if (!tsearch(r, &context->requests->by_message, request_compare)) {
                free(r);
                return -ENOMEM;
        }
        (void) sd_bus_message_ref(m);
        r->context = context;
        r->since_usec = now_usec(CLOCK_MONOTONIC);
        r->scheduled = state == REQUEST_RUNNING;
        r->peer = peer_ref(peer);
        TAILQ_INSERT_TAIL(&peer->requests, r, of_peer);
        request_enlist(r, state);
        *ret = r;
        return 0;
}

static void request_forget_auth(Request *r) {
        if (r->auth)
                r->auth_free(r->auth);
        r->auth = NULL;
}

Request *request_free(Request *r) {
        Context *context = r->context;

        if (r->unqueue)
                r->unqueue(r);
        if (r->given)
                r->given(r);
        request_forget_auth(r);
        request_delist(r);
        TAILQ_REMOVE(&r->peer->requests, r, of_peer);
        (void) tdelete(r, &context->requests->by_message, request_compare);
        quota_release(&r->charge);
        peer_unref(r->peer);
        sd_bus_message_unref(r->m);
        free(r);
        context_touch(context);
        return NULL;
}

void requests_settle(Requests *all) {
        Request *r;

        while ((r = TAILQ_FIRST(&all->lists[REQUEST_RUNNING]))) {
                if (!r->work) {
                        request_free(r);
                        continue;
                }
                request_forget_auth(r);
                request_set_state(r, REQUEST_WORKING);
        }
}

/* ---- back to the handler ---- */

/* A full queue must not end the call here: only its handler can end what it has begun. */
void request_resume(Request *r) {
        Requests *all = r->context->requests;

        request_set_state(r, REQUEST_RESUMED);
        if (sd_bus_enqueue_for_read(r->context->bus, r->m) >= 0)
                return;
        request_set_state(r, REQUEST_STUCK);
        (void) sd_event_source_set_time_relative(all->again, AGAIN_USEC);
        (void) sd_event_source_set_enabled(all->again, SD_EVENT_ONESHOT);
}

static int requests_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Requests *all = userdata;

        for (size_t n = all->n[REQUEST_STUCK]; n > 0; n--)
                request_resume(TAILQ_FIRST(&all->lists[REQUEST_STUCK]));
        return 0;
}

static void requests_take_turn(void *userdata) {
        Requests *all = userdata;
        Request *r = TAILQ_FIRST(&all->lists[REQUEST_PAUSED]);

        if (r) {
                r->has_turn = true;
                request_resume(r);
        }
        if (all->n[REQUEST_PAUSED] > 0)
                turn_wait(&all->turn);
}

/* ---- for handlers ---- */

void request_pause(Request *r) {
        request_set_state(r, REQUEST_PAUSED);
        turn_wait(&r->context->requests->turn);
}

int request_begin(Context *context, Peer *peer, sd_bus_message *m, void *work,
                  void (*end)(void *work), Request **ret, Refusal *why) {
        Request *r = request_find(context->requests, m);
        int error = 0;

        if (!r)
                error = request_new(context, peer, m, REQUEST_RUNNING, &r);
        if (error == 0)
                error = quota_charge(&context->quota, peer->uid, QUOTA_CALLS, 1, &r->charge, why);
        if (error != 0)
                return error; /* a new one is freed after its handler has returned */
        r->work = work;
        r->end = end;
        *ret = r;
        return 0;
}

void *request_work(const Context *context, const sd_bus_message *m, void (*end)(void *work)) {
        const Request *r = request_find(context->requests, m);

        return r && r->end == end ? r->work : NULL;
}

uint64_t request_age_usec(const Context *context, const sd_bus_message *m) {
        const Request *r = request_find(context->requests, m);

        return r ? now_usec(CLOCK_MONOTONIC) - r->since_usec : 0;
}

Request *request_done(Request *r) {
        if (!r)
                return NULL;
        r->work = NULL;
        r->end = NULL;
        quota_release(&r->charge);
        if (r->state != REQUEST_RUNNING) /* else it is freed after its handler has returned */
                request_free(r);
        return NULL;
}

void request_fail(Request *r, int error, const Refusal *why) {
        reply_failure_later(r->m, error, why);
        r->end(r->work);
}

void requests_walk(const Requests *all, void (*end)(void *work),
                   void (*f)(void *userdata, void *work), void *userdata) {
        const Request *r;

        for (RequestState state = 0; state < _REQUEST_STATE_MAX; state++)
                TAILQ_FOREACH (r, &all->lists[state], list)
                        if (r->end == end)
                                f(userdata, r->work);
}

static void request_end(Request *r) {
        if (r->work)
                r->end(r->work);
        else
                request_free(r);
}

/* Ending one request may end others: the reader starts its next job, which may fail. */
void requests_forget_peer(Peer *peer) {
        while (!TAILQ_EMPTY(&peer->requests))
                request_end(TAILQ_FIRST(&peer->requests));
}

/* ---- all of them ---- */

static Request *requests_first(const Requests *all) {
        for (RequestState state = 0; state < _REQUEST_STATE_MAX; state++)
                if (!TAILQ_EMPTY(&all->lists[state]))
                        return TAILQ_FIRST(&all->lists[state]);
        return NULL;
}

int requests_new(Context *context, Requests **ret) {
        Requests *all = calloc(1, sizeof(*all));
        int r;

        if (!all)
                return -ENOMEM;
        all->context = context;
        turn_init(&all->turn, &context->turns, requests_take_turn, all);
        for (RequestState state = 0; state < _REQUEST_STATE_MAX; state++)
                TAILQ_INIT(&all->lists[state]);
        r = sd_event_add_time(context->event, &all->again, CLOCK_MONOTONIC, 0, 1, requests_again,
                              all);
        if (r >= 0)
                r = sd_event_source_set_enabled(all->again, SD_EVENT_OFF);
        if (r < 0) {
                requests_free(all);
                return r;
        }
        *ret = all;
        return 0;
}

/* The end of one may change the state of another one. */
void requests_end(Requests *all) {
        while (all && requests_any(all))
                request_end(requests_first(all));
}

Requests *requests_free(Requests *all) {
        if (!all)
                return NULL;
        sd_event_source_disable_unref(all->again);
        turn_done(&all->turn);
        free(all);
        return NULL;
}
