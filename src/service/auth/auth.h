/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The only place that asks polkit, by one table of methods and their actions
 * (service/auth/action.h).
 *
 * A handler calls auth_check() first, before it changes anything. While polkit is asked, the
 * handler gets AUTH_PENDING and returns 1 to sd-bus. It is called again with the same message, from
 * its start, when the answers are there. Root is never asked. Everybody else is: sd-bus' own
 * privilege check accepts every caller of the service's own uid.
 *
 * The answers for a message stay known until its handler returns, so a handler may check one thing
 * after another.
 */

#include "core/refusal.h"
#include "service/auth/action.h"
#include "service/auth/asked.h"
#include "service/bus/request.h"

typedef struct Checks Checks;

#define AUTH_PENDING (-EINPROGRESS)

/* The bus of the context must be attached to an event loop. */
int auth_new(Context *context, Auth **ret);
Auth *auth_free(Auth *a);

/* For process-check.h. */
Checks *auth_checks(Auth *a);

/* Another limit than CHECKS_WAITING_MAX (service/auth/polkit-check.h), for later calls. */
void auth_set_waiting_max(Auth *a, unsigned max);

/* Whether the sender of m may do what needs the actions: Action bits of the called method's row.
 * asked is what polkit's rules and prompts are told of it, or NULL.
 *
 * - 0: yes.
 * - AUTH_PENDING: return 1 to sd-bus; the message will come back.
 * - -ESTALE: the caller has left; return 1 to sd-bus.
 * - REFUSAL_ACCESS_DENIED, REFUSAL_INTERACTION_REQUIRED (polkit needs a prompt, which the message
 *   does not allow), REFUSAL_LIMITS_EXCEEDED: the text names the action and how to get it.
 * - Another negative errno: a fault. */
int auth_check(Auth *a, Peer *peer, sd_bus_message *m, unsigned actions, const Asked *asked,
               Refusal *why);

/* Whether the sender of m may read other users' data. Never prompts and never refuses: 1 yes, 0 no,
 * AUTH_PENDING, -ESTALE, or a fault. A property's getter cannot wait, so a filter asks this for
 * Properties.Get and GetAll, and the getter finds the answer here. */
int auth_may_manage(Auth *a, Peer *peer, sd_bus_message *m);

/* Whether the peer may use an object of uid: 0, AUTH_PENDING, -ESTALE or REFUSAL_NOT_OWNER. what
 * names the object in the refusal. */
int auth_check_owner(Auth *a, Peer *peer, sd_bus_message *m, uid_t uid, const char *what,
                     Refusal *why);

/* The peer has left: forgets what it was granted. */
void auth_forget_peer(Auth *a, Peer *peer);
