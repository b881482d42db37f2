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

#include "service/store/store.h"

typedef struct IssuedEvents IssuedEvents;
typedef struct IssuedEventsUser IssuedEventsUser;

#define ISSUED_EVENTS_EVENTS_MAX 4096u /* of a user: 32 KiB */
#define ISSUED_EVENTS_USERS_MAX  256u
#define ISSUED_EVENTS_PAGE       256u /* events */
#define ISSUED_EVENTS_PAGES      (ISSUED_EVENTS_EVENTS_MAX / ISSUED_EVENTS_PAGE)

TAILQ_HEAD(IssuedEventsUserList, IssuedEventsUser);

struct IssuedEventsUser {
        uid_t uid;
        uint64_t *ids; /* a ring when it is full */
        size_t n_room;
        uint64_t n_issued; /* ever */
        StoreItem pages[ISSUED_EVENTS_PAGES];
        TAILQ_ENTRY(IssuedEventsUser) users;
};

struct IssuedEvents {
        struct IssuedEventsUserList users; /* the one that got something last is the first */
        size_t n_users;
        Store *store; /* NULL: nothing is written down */
};

void issued_events_init(IssuedEvents *h);
void issued_events_done(IssuedEvents *h); /* what is kept stays so */

/* Goes on with what an earlier run has left in the store, and keeps it there from now on. -ENOMEM.
 */
int issued_events_restore(IssuedEvents *h, Store *store);

int issued_events_add(IssuedEvents *h, uid_t uid, uint64_t id); /* -ENOMEM */
bool issued_events_has(const IssuedEvents *h, uid_t uid, uint64_t id);
