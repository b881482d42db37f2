/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What polkit is asked for one call: one check after the other, until everything is granted or one
 * is refused. Then the call's message goes back to its handler.
 */

#include "core/refusal.h"
#include "service/auth/auth-cache.h"
#include "service/auth/polkit-check.h"

typedef struct AuthRequest AuthRequest;
typedef struct AuthRequests AuthRequests;

typedef enum AuthRequestState {
        AUTH_REQUEST_NEW,
        AUTH_REQUEST_ASKING, /* polkit is being asked */
        AUTH_REQUEST_STUCK,  /* polkit has answered; there was no room for the message in the queue
                              */
        AUTH_REQUEST_ANSWERED, /* the message is in the queue again */
        AUTH_REQUEST_RUNNING,  /* its handler runs again, or has just done so */
        _AUTH_REQUEST_STATE_MAX,
} AuthRequestState;

/* One call and what polkit says to it, one check after the other. */
struct AuthRequest {
        AuthRequests *questions;
        TAILQ_ENTRY(AuthRequest) entry;
        AuthRequestState state;
        Peer *peer;
        sd_bus_message *m;
        uint64_t since_usec; /* CLOCK_MONOTONIC */
        Details details;
        unsigned todo; /* actions to be asked for, the lowest bit is next */
        bool quiet;    /* never a prompt, and a no is no refusal */
        bool prompt;   /* the check under way may prompt */
        Check *check;  /* the one under way */
        unsigned granted;
        unsigned denied;  /* quietly */
        unsigned refused; /* one bit, with its words in why */
        Refusal why;
        int fault;
};

TAILQ_HEAD(AuthRequestList, AuthRequest);

struct AuthRequests {
        sd_bus *bus;
        Checks checks;
        AuthCache consents;
        void *by_message; /* tree of AuthRequest */
        struct AuthRequestList lists[_AUTH_REQUEST_STATE_MAX];
        size_t n[_AUTH_REQUEST_STATE_MAX];
        sd_event_source *again; /* those that are stuck are tried again */
};

/* The bus has to be attached to an event loop. */
int auth_requests_init(AuthRequests *qs, sd_bus *bus);
void auth_requests_done(AuthRequests *qs); /* fine for one that is all zero */

AuthRequest *auth_request_find(AuthRequests *qs, sd_bus_message *m);
int auth_request_new(AuthRequests *qs, Peer *peer, sd_bus_message *m, AuthRequest **ret);
void auth_request_free(AuthRequest *q); /* a check that is under way is cancelled */
void auth_request_set_state(AuthRequest *q, AuthRequestState state);

/* Has polkit asked for the actions: 0, the message will come back. On failure q is freed:
 * REFUSAL_LIMITS_EXCEEDED when the user has too many in line, -ENOMEM. */
int auth_request_start(AuthRequest *q, unsigned actions, const Details *details, bool quiet,
                       Refusal *why);
