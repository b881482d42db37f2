/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What polkit is asked for one call: one check after the other, until everything is granted or one
 * is refused. Then the call's message goes back to its handler.
 */

#include "core/refusal.h"
#include "service/auth/auth-cache.h"
#include "service/auth/polkit-check.h"
#include "service/bus/request.h"

typedef struct AuthRequests AuthRequests;

/* One call and what polkit says to it, one check after the other. */
struct AuthRequest {
        AuthRequests *all;
        Request *request;
        PolkitSubject subject;
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

struct AuthRequests {
        Checks checks;
        AuthCache cache;
};

/* The bus has to be attached to an event loop. */
int auth_requests_init(AuthRequests *all, sd_bus *bus);
void auth_requests_done(AuthRequests *all); /* fine for one that is all zero */

/* Belongs to the request, with which it is freed; -ENOMEM. */
int auth_request_new(AuthRequests *all, Request *request, AuthRequest **ret);

/* Has polkit asked for the actions: 0, the message will come back. REFUSAL_LIMITS_EXCEEDED when the
 * user has too many waiting, -ENOMEM: nothing is asked. */
int auth_request_start(AuthRequest *q, unsigned actions, const Details *details, bool quiet,
                       Refusal *why);
