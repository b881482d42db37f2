/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Work of the loop that can wait: what takes long is done in slices, and calls of users who have
 * had many are queued. All of it is in one list. The first of the list has its turn when there is
 * nothing else to do, or when everything else has had SLICE_USEC since the last turn ended. So a
 * new message waits for one slice at most, and no flood of messages keeps this work from being
 * done.
 *
 * What a call does in slices has request_pause().
 */

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "core/util.h"

typedef struct Turn Turn;
typedef struct Turns Turns;

/* How long a slice takes; also what a call does before it pauses. */
#define SLICE_USEC (4 * USEC_PER_MSEC)

struct Turns {
        sd_event_source *source;
        TAILQ_HEAD(, Turn) waiting;
        uint64_t due_usec; /* CLOCK_MONOTONIC: from then on the first comes before all else */
};

/* All zero: no work. */
struct Turn {
        Turns *turns;
        bool waiting;
        void (*take)(void *userdata);
        void *userdata;
        TAILQ_ENTRY(Turn) entry;
};

/* -ENOMEM. */
int turns_init(Turns *all, sd_event *event);
void turns_done(Turns *all);

/* Before each iteration of the loop. */
void turns_prepare(Turns *all);

/* A turn has ended: everything else comes first for SLICE_USEC. */
void turns_rest(Turns *all);

void turn_init(Turn *t, Turns *all, void (*take)(void *userdata), void *userdata);
void turn_done(Turn *t);

/* take() is called once, in its turn. Does nothing while it waits already. */
void turn_wait(Turn *t);
