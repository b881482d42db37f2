/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which raw events were handed out to which user, by the ids that the kernel gives events
 * (PERF_EVENT_IOC_ID). No id is given twice.
 *
 * A client may add an event to a group only if OpenEvent handed the leader out to the same user. So
 * a leader is never an event of the service itself (counters, of which GetFds hands out
 * descriptors) or of another user. What clients pass on to each other is their own affair, and
 * cannot be detected.
 *
 * The service is not told when an event is closed. So the latest events of each user, and the
 * latest users, are remembered. Forgetting is harmless: the client opens the group anew.
 *
 * A restart of the service forgets nothing. For that a user's events are stored in pages, and new
 * events write the pages that they are in.
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
        uint64_t *ids; /* a ring once it is full */
        size_t n_room;
        uint64_t n_issued; /* so far */
        StoreItem pages[ISSUED_EVENTS_PAGES];
        TAILQ_ENTRY(IssuedEventsUser) users;
};

struct IssuedEvents {
        struct IssuedEventsUserList users; /* the latest one first */
        size_t n_users;
        Store *store; /* NULL: nothing is stored */
};

void issued_events_init(IssuedEvents *h);
void issued_events_done(IssuedEvents *h); /* the store keeps its pages */

/* Restores what an earlier run has stored, and stores new events from now on. -ENOMEM. */
int issued_events_restore(IssuedEvents *h, Store *store);

/* -ENOMEM: none was added. */
int issued_events_add(IssuedEvents *h, uid_t uid, uint64_t id);
int issued_events_add_all(IssuedEvents *h, uid_t uid, const uint64_t *ids, size_t n);
bool issued_events_has(const IssuedEvents *h, uid_t uid, uint64_t id);
