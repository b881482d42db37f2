/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The pending checks at polkit, and the queue in front of them.
 *
 * polkit may hang, die, or take as long as a person does, and the bus allows a connection 128
 * pending replies. So few checks are pending at once, users take turns (fairqueue.h), a check that
 * the bus refuses returns to the queue, and a check that nobody waits for is cancelled.
 *
 * polkit answers one check after another. A user has one check there, so that other users never
 * wait for more than one of theirs. Beside slow checks (a person is asked, polkit hangs) the user
 * may have others. A user whose checks have kept polkit busy pauses between those that wait; one
 * that asks again only when it has its answer is as slow as polkit anyway.
 */

#include <systemd/sd-bus.h>

#include "service/auth/action.h"
#include "service/auth/polkit.h"
#include "service/util/fairqueue.h"
#include "service/util/rate-limit.h"

typedef struct Check Check;
typedef struct Checks Checks;

/* The bus allows a connection 128 pending replies, of calls to all services together. */
#define CHECKS_USER_MAX  8
#define CHECKS_QUICK_MAX 1 /* of those, ones that are not slow */
#define CHECK_SLOW_USEC  (50 * USEC_PER_MSEC)

/* How long polkit may have worked for a user before they pause, and how much of that decays in a
 * second. */
#define CHECKS_FREE_USEC   (500 * USEC_PER_MSEC)
#define CHECKS_PER_SEC     (250 * USEC_PER_MSEC)
#define CHECKS_PAUSE       2u /* pause: so many times as long as the check took */
#define CHECKS_TOTAL_MAX   96
#define CHECKS_WAITING_MAX 256 /* of one user, queued */

/* The time limit of a check without a prompt; after it the answer is no. A prompt has no limit. */
#define CHECK_ANSWER_USEC (25 * USEC_PER_SEC)

/* Called once, and the check is over then. Not called for a check that was cancelled.
 *
 * - r is 0: polkit's answer; if answer is NULL, the error that came instead.
 * - r is -ETIMEDOUT: there was no answer in time.
 * - r is another negative errno: a fault. */
typedef void (*CheckDone)(void *userdata, int r, const PolkitAnswer *answer,
                          const sd_bus_error *error);

TAILQ_HEAD(CheckList, Check);

struct Checks {
        sd_bus *bus;
        FairQueue queue;
        struct CheckList quick;     /* pending and not slow yet, oldest first */
        struct CheckList cancelled; /* cancelled or pausing, by deadline */
        RateLimit used;             /* µs that polkit has worked, by uid */
        uint64_t last_id;
        bool paused;             /* the bus accepts no more calls for now */
        sd_event_source *retry;  /* while paused */
        sd_event_source *reaper; /* of the list cancelled */
        sd_event_source *slow;   /* when the next one becomes slow */
};

/* The bus must be attached to an event loop. */
int checks_init(Checks *c, sd_bus *bus);
void checks_done(Checks *c); /* all checks are done or cancelled */

/* Asks polkit whether the subject may do the action, when it is the user's turn. prompt: polkit may
 * ask a person. first: goes to the head of the queue, for a caller that has waited before. subject
 * and details are the caller's, and must stay as long as the check. done may be called at once,
 * after *ret is set. FAIRQUEUE_FULL, -ENOMEM. */
int checks_ask(Checks *c, const PolkitSubject *subject, Action action, const Details *details,
               bool prompt, bool first, CheckDone done, void *userdata, Check **ret);

/* Nobody waits for the check any more. NULL is fine. Returns NULL. */
Check *check_cancel(Check *check);
