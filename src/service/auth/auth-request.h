/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What polkit is asked for one call: one check after another, until all actions are granted or one
 * is refused. The call's message then goes back to its handler.
 */

#include "core/refusal.h"
#include "service/auth/auth-cache.h"
#include "service/auth/polkit-check.h"
#include "service/bus/request.h"

typedef struct AuthRequests AuthRequests;

struct AuthRequest {
        AuthRequests *all;
        Request *request;
        PolkitSubject subject;
        Details details;
        unsigned todo; /* actions to be asked for; the lowest bit is next */
        bool quiet;    /* never prompts, and a no is not a refusal */
        bool prompt;   /* the pending check may prompt */
        bool failed;   /* a prompted check said no; the pending one tells why */
        Check *check;  /* the pending check */
        unsigned granted;
        unsigned denied;  /* while quiet */
        unsigned refused; /* one bit; its text is in why */
        Refusal why;
        int fault;
};

struct AuthRequests {
        Checks checks;
        AuthCache cache;
};

/* The bus must be attached to an event loop. */
int auth_requests_init(AuthRequests *all, sd_bus *bus);
void auth_requests_done(AuthRequests *all); /* fine for one that is all zero */

/* The result belongs to the request, and is freed with it. -ENOMEM. */
int auth_request_new(AuthRequests *all, Request *request, AuthRequest **ret);

/* Asks polkit for the actions. 0: the message will come back. REFUSAL_LIMITS_EXCEEDED (too many
 * checks of the user wait) and -ENOMEM: polkit is not asked. */
int auth_request_start(AuthRequest *q, unsigned actions, const Details *details, bool quiet,
                       Refusal *why);
