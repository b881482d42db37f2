/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A method call under way: one that is answered later than in its handler, because the helper,
 * polkit or the loop comes in between. It is charged to its user, is found again by its message
 * when that goes to the handler a second time, and ends without an answer when its sender leaves.
 *
 * It is a member of what knows the rest of it.
 */

#include "service/daemon/service.h"

struct Call {
        Service *service;
        sd_bus_message *m;
        Peer *peer;

        /* call.c's own */
        QuotaCharge charge;
        void (*end)(Call *);
        LIST_ENTRY(Call) of_service, of_peer;
};

/* end frees what the call is a member of, and calls call_done(). Where this fails (REFUSAL_*: too
 * many for the user) call_done() is due as well. */
int call_begin(Call *c, Service *s, Peer *peer, sd_bus_message *m, void (*end)(Call *),
               Refusal *why);
void call_done(Call *c);

/* The call that this message began, or NULL. */
Call *call_find(const Peer *peer, const sd_bus_message *m);

/* Answers it with what it failed with and ends it, outside of its handler. */
void call_fail(Call *c, int r, const Refusal *why);

void calls_forget_peer(Peer *peer); /* it has left */
void calls_done(Service *s);
