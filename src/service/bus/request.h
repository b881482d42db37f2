/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A method call that is not answered when its handler first returns: its sender is not identified
 * yet, it is queued, polkit is asked, or a sibling process or the loop works for it.
 *
 * A message has one Request, and one way back into its handler: request_resume(). The handler then
 * runs again from its start. It finds the work that it has begun (request_work()) and polkit's
 * answers (auth.h). A Request ends when its handler returns with nothing left to wait for, or,
 * without an answer, when its sender leaves.
 *
 * Calls that are answered at once have no Request.
 */

#include "service/bus/peer.h"
#include "service/util/context.h"

typedef struct AuthRequest AuthRequest;
typedef struct Request Request;
typedef struct UserQueue UserQueue;

typedef enum RequestState {
        REQUEST_IDENTIFYING, /* the bus is asked for the sender's credentials */
        REQUEST_QUEUED,      /* in its user's queue (user-queue.h) */
        REQUEST_AUTHORIZING, /* polkit is asked */
        REQUEST_UNDELIVERED, /* earlier descriptors are still on their way (delivery.h) */
        REQUEST_WORKING,     /* its work goes on without its handler */
        REQUEST_PAUSED,      /* others have their turn */
        REQUEST_RESUMED,     /* on its way back to its handler, in the bus's queue */
        REQUEST_STUCK,       /* as resumed, but the bus's queue was full: retried */
        REQUEST_RUNNING,     /* its handler runs, or has just returned */
        _REQUEST_STATE_MAX,
} RequestState;

TAILQ_HEAD(RequestList, Request);

struct Request {
        Context *context;
        sd_bus_message *m;
        Peer *peer;
        RequestState state;
        uint64_t since_usec; /* CLOCK_MONOTONIC: when the call arrived */
        bool scheduled;      /* the scheduler has let it pass */
        bool has_turn;       /* paused before, and resumed for a slice */

        /* private to user-queue.c or delivery.c, while the request is queued there */
        UserQueue *user;
        QuotaCharge queued, queued_bytes;
        TAILQ_ENTRY(Request) queue;
        void (*unqueue)(Request *r);

        /* private to delivery.c: descriptors that the reply may carry, or waits for. given is
         * called when the request ends. */
        unsigned n_descriptors, n_awaited;
        void (*given)(Request *r);

        /* auth's; freed with the request, or after its handler has returned */
        AuthRequest *auth;
        void (*auth_free)(AuthRequest *auth);
        bool manages; /* redaction's: the answer, kept while the request works */

        /* private to request.c */
        QuotaCharge charge;
        void *work;
        void (*end)(void *work);
        TAILQ_ENTRY(Request) list, of_peer;
};

int requests_new(Context *context, Requests **ret);

/* Ends all work without answers. */
void requests_end(Requests *all);
Requests *requests_free(Requests *all);

/* The number of requests in a state; whether there are any at all. */
size_t requests_n(const Requests *all, RequestState state);
bool requests_any(const Requests *all);

/* The request of a message, or NULL. */
Request *request_find(const Requests *all, const sd_bus_message *m);

/* -ENOMEM. */
int request_new(Context *context, Peer *peer, sd_bus_message *m, RequestState state, Request **ret);
void request_set_state(Request *r, RequestState state);
Request *request_free(Request *r);

/* The handler of the last message has returned: frees requests that wait for nothing. */
void requests_settle(Requests *all);

/* Puts the message back into the bus's queue, for its handler. */
void request_resume(Request *r);

/* ---- for handlers ---- */

/* The call goes on as work, which is charged to its user. end frees the work and calls
 * request_done(); it is also called when the sender leaves. REFUSAL_*: the user has too many calls
 * under way; *ret stays NULL. */
int request_begin(Context *context, Peer *peer, sd_bus_message *m, void *work,
                  void (*end)(void *work), Request **ret, Refusal *why);

/* The work that this message has begun, if end is what frees it, else NULL. */
void *request_work(const Context *context, const sd_bus_message *m, void (*end)(void *work));

/* The handler has done what one turn of the loop has time for (SLICE_USEC), and runs again after
 * others had theirs (turn.h). Requests that are paused take turns. */
void request_pause(Request *r);

/* The age of the call in microseconds; 0 while its handler runs for the first time. */
uint64_t request_age_usec(const Context *context, const sd_bus_message *m);

/* The work is over. NULL is fine. Returns NULL. */
Request *request_done(Request *r);

/* Answers the call with an error and ends its work, outside of its handler. */
void request_fail(Request *r, int error, const Refusal *why);

/* Calls f for the work of all requests that end frees. f must not end one. */
void requests_walk(const Requests *all, void (*end)(void *work),
                   void (*f)(void *userdata, void *work), void *userdata);

void requests_forget_peer(Peer *peer); /* the peer has left */
