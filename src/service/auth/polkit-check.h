/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The checks under way at polkit, and the queue in front of them.
 *
 * polkit may hang, die or take as long as a person does; the bus lets one connection await 128
 * replies. So few checks are under way at once, users take turns, a check that the bus refuses goes
 * back to the queue, and one that nobody waits for any more is cancelled.
 *
 * polkit answers one check after another. A user has one check there, so that nobody else waits for
 * more than that; beside checks that take long (a person is being asked, polkit hangs) they may
 * have others. A user who has had polkit work for a while is paused between their checks.
 */

#include <systemd/sd-bus.h>

#include "service/auth/action.h"
#include "service/auth/polkit.h"
#include "service/util/fairqueue.h"
#include "service/util/rate-limit.h"

typedef struct Check Check;
typedef struct Checks Checks;

/* The bus lets one connection await 128 replies, our calls to others included. */
#define CHECKS_USER_MAX  8
#define CHECKS_QUICK_MAX 1 /* of those */
#define CHECK_SLOW_USEC  (50 * USEC_PER_MSEC)

/* How long polkit may have worked for one user before they are paused, and how much of that is
 * forgotten in a second. */
#define CHECKS_FREE_USEC   (500 * USEC_PER_MSEC)
#define CHECKS_PER_SEC     (250 * USEC_PER_MSEC)
#define CHECKS_REST        2u /* times as long as the check took */
#define CHECKS_TOTAL_MAX   96
#define CHECKS_WAITING_MAX 256 /* of one user, in the queue */

/* How long polkit may take where nobody has to be asked, then it is no. A prompt may take for ever.
 */
#define CHECK_ANSWER_USEC (25 * USEC_PER_SEC)

/* Called once, unless the check is cancelled before. r is 0: polkit's answer, or the error that
 * came instead of it (answer is NULL then); -ETIMEDOUT: there was no answer in time; or another
 * negative errno, a fault. The check is over. */
typedef void (*CheckDone)(void *userdata, int r, const PolkitAnswer *answer,
                          const sd_bus_error *error);

TAILQ_HEAD(CheckList, Check);

struct Checks {
        sd_bus *bus;
        FairQueue queue;
        struct CheckList quick;     /* under way and not slow yet, oldest first */
        struct CheckList cancelled; /* or resting; by deadline */
        RateLimit used;             /* µs that polkit has worked, by uid */
        uint64_t last_id;
        bool paused;             /* the bus takes no more calls for now */
        sd_event_source *retry;  /* while paused */
        sd_event_source *reaper; /* of cancelled and resting ones */
        sd_event_source *slow;   /* when the next one is */
};

/* The bus has to be attached to an event loop. */
int checks_init(Checks *c, sd_bus *bus);
void checks_done(Checks *c); /* no check may be in *ret any more */

/* Asks polkit, when it is this user's turn, whether the subject may do it. prompt: it may ask a
 * person. first: for somebody who has stood in line before. subject and details are the caller's
 * and must stay as long as the check. done may be called at once, after *ret has been set.
 * FAIRQUEUE_FULL, -ENOMEM. */
int checks_ask(Checks *c, const PolkitSubject *subject, Action action, const Details *details,
               bool prompt, bool first, CheckDone done, void *userdata, Check **ret);

/* Nobody waits for it any more; NULL is fine. Returns NULL. */
Check *check_cancel(Check *check);
