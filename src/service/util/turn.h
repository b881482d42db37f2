/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Work of the loop that others need not wait for: what takes long is done in slices, and calls of
 * users who have had many are queued. All of it waits for its turn. Those that wait take turns, one
 * at a time: when there is nothing else to do, and when everything else has had SLICE_USEC since
 * the last one ended. So what is new is reached after one slice, and no flood of messages keeps
 * this work from being done.
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
        uint64_t due_usec; /* CLOCK_MONOTONIC: the first of them comes before all else */
};

/* All zero: no work. */
struct Turn {
        Turns *turns;
        bool waiting;
        void (*take)(void *userdata);
        void *userdata;
        TAILQ_ENTRY(Turn) entry;
};

int turns_init(Turns *all, sd_event *event);
void turns_done(Turns *all);

/* Before each iteration of the loop. */
void turns_prepare(Turns *all);

/* What was done in a turn has ended: everything else comes first for a while. */
void turns_rest(Turns *all);

void turn_init(Turn *t, Turns *all, void (*take)(void *userdata), void *userdata);
void turn_done(Turn *t);

/* take() is called once. */
void turn_wait(Turn *t);
