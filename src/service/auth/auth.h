/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The one place that asks polkit, from one table of methods and their actions
 * (service/auth/action.h).
 *
 * A handler calls auth_check() first thing, before it changes anything. While polkit is being
 * asked the handler gets AUTH_PENDING, returns 1 to sd-bus and is called again with the same
 * message, from its start, when the answers are there. Root is never asked. Nobody else is spared:
 * sd-bus' own privilege check says yes to every caller of our own uid.
 *
 * What was answered for a message stays known until the handler that got it back has returned, so a
 * handler may check one thing after another.
 */

#include "core/refusal.h"
#include "service/auth/action.h"
#include "service/auth/asked.h"
#include "service/bus/request.h"

typedef struct Checks Checks;

#define AUTH_PENDING (-EINPROGRESS)

/* The bus of the context has to be attached to an event loop. */
int auth_new(Context *context, Auth **ret);
Auth *auth_free(Auth *a);

/* For process-check.h. */
Checks *auth_checks(Auth *a);

/* Another limit than CHECKS_WAITING_MAX (service/auth/polkit-check.h), for the calls that come from
 * now on. */
void auth_set_waiting_max(Auth *a, unsigned max);

/* Whether the sender of m may do what needs the actions (a set of Action bits, which must lie
 * within what the table gives the called method). asked is what polkit's rules and prompts are told
 * of it, or NULL.
 *
 * 0: yes, go on. AUTH_PENDING: return 1 to sd-bus, the message will come back. -ESTALE: the
 * caller has left meanwhile: return 1, nobody is to be answered. REFUSAL_ACCESS_DENIED,
 * REFUSAL_INTERACTION_REQUIRED (polkit would have to ask a person, and the message does not allow
 * that), REFUSAL_LIMITS_EXCEEDED with words that name the action and how to get it. Other negative
 * errno: fault. */
int auth_check(Auth *a, Peer *peer, sd_bus_message *m, unsigned actions, const Asked *asked,
               Refusal *why);

/* The same for reading what is somebody else's: never interactive, no refusal; 1 yes, 0 no, or
 * AUTH_PENDING / -ESTALE / a fault. A property's getter cannot wait: for Properties.Get and
 * GetAll this is to be asked in a filter, after which the getter finds the answer here. */
int auth_may_manage(Auth *a, Peer *peer, sd_bus_message *m);

/* Whether the peer may use an object of uid: 0, AUTH_PENDING, -ESTALE or REFUSAL_NOT_OWNER. what
 * names the object in the refusal. */
int auth_check_owner(Auth *a, Peer *peer, sd_bus_message *m, uid_t uid, const char *what,
                     Refusal *why);

/* The peer has left: what was granted to it is forgotten. */
void auth_forget_peer(Auth *a, Peer *peer);
