/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The rules for opening a raw event, whoever asks for it: OpenEvent (event-call.h), OpenEvents
 * (events-call.h), or a program under the broker (service/broker/broker.h).
 */

#include <sys/queue.h>

#include "perf/process/thread.h"
#include "service/event/event-request.h"
#include "service/event/issued-events.h"
#include "service/hold/hold-object.h"
#include "service/util/context.h"

typedef struct EventOpening EventOpening;
typedef struct EventStream EventStream;
typedef struct Events Events;

struct Events {
        Context *context;
        Holds *holds;
        IssuedEvents issued;
        LIST_HEAD(, EventStream) streams;
};

/* An event that is to be opened, and for whom. All is borrowed. */
struct EventOpening {
        Events *events;
        uid_t uid;
        bool root; /* may count everything */
        const EventRequest *request;
        const Thread *target; /* if the request has one */
        bool untraceable;     /* authorized to count the target all the same */
};

typedef enum EventLeader {
        EVENT_LEADER_ISSUED,  /* an event that the service gave to that user */
        EVENT_LEADER_STRANGE, /* another event */
        EVENT_LEADER_NONE,    /* no perf event */
} EventLeader;

EventLeader event_check_leader(const Events *events, uid_t uid, int fd);

/* REFUSAL_BUSY: another user has an exclusive hold on what it would take. */
int event_admit(const EventOpening *o, Refusal *why);

/* REFUSAL_NOT_PERMITTED: it takes counters from others, which only a hold allows. */
int event_check_hold(const EventOpening *o, Refusal *why);

/* After event_check_hold(). Opens it, disabled, without what the user was not allowed to see, and
 * pinned in the user's hold. Its output is set later: an exec of the target may enable the event,
 * and no record may be in the caller's buffer before the target is inspected. A descriptor or a
 * negative errno, the kernel's own. */
int event_open(const EventOpening *o);

/* The same on each of these threads, for OpenEvents. The target's process is theirs; its pidfd is
 * -1 where they are of several processes, which stand. ret_fds gets descriptors and negative
 * errnos; after the first errno other than -ESRCH nothing is opened. -ENOMEM. */
int event_open_threads(const EventOpening *o, const pid_t *tids, size_t n, int *ret_fds);
