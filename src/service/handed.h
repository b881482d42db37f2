/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which raw events were handed out to whom, by the numbers that the kernel gives events
 * (PERF_EVENT_IOC_ID; none is ever given twice).
 *
 * A client may have an event join a group only if he got its leader here: a leader is then his own
 * in any case, for what the service holds itself (counters, of which GetFds gives descriptors) is
 * not in here, and what another user got neither. What he passes on to others is his own doing;
 * nobody can tell.
 *
 * Nobody says when an event is closed, so each user's latest are remembered, and the users that had
 * any last. Forgetting harms nobody: the client opens his group anew.
 *
 * A restart of the service forgets nothing: for that a user's events are written down in pages, for
 * every event that is opened one of them.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "service/store.h"

typedef struct Handed Handed;
typedef struct HandedUser HandedUser;

#define HANDED_EVENTS_MAX 4096u /* of a user: 32 KiB */
#define HANDED_USERS_MAX  256u
#define HANDED_PAGE       256u /* events */
#define HANDED_PAGES      (HANDED_EVENTS_MAX / HANDED_PAGE)

TAILQ_HEAD(HandedUserList, HandedUser);

struct HandedUser {
        uid_t uid;
        uint64_t *ids; /* a ring when it is full */
        size_t n_room;
        uint64_t n_handed; /* ever */
        StoreItem pages[HANDED_PAGES];
        TAILQ_ENTRY(HandedUser) users;
};

struct Handed {
        struct HandedUserList users; /* the one that got something last is the first */
        size_t n_users;
        Store *store; /* NULL: nothing is written down */
};

void handed_init(Handed *h);
void handed_done(Handed *h); /* what is kept stays so */

/* Goes on with what an earlier run has left in the store, and keeps it there from now on. -ENOMEM.
 */
int handed_restore(Handed *h, Store *store);

int handed_add(Handed *h, uid_t uid, uint64_t id); /* -ENOMEM */
bool handed_has(const Handed *h, uid_t uid, uint64_t id);
