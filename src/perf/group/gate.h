/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Enabling and disabling events that threads inherit.
 *
 * The event of a new thread is a copy of its parent's, state included, and only afterwards joins
 * the list of the events that an ioctl reaches (inherit_event() in kernel/events/core.c). An ioctl
 * in between misses it, so the ioctls are repeated as long as threads are created.
 *
 * A thread that loses its processor in between for longer than the repetitions take is still
 * missed: its child has no number yet, so nothing tells of it. The kernel may exchange the events
 * of such a child with its parent's (perf_event_context_sched_out()), and then the parent is
 * missed, for ever. So the owner of the events repeats the ioctls later, at growing distances
 * (group_gate_again()). Seen with more tasks that run than CPUs, in one of some dozen starts amidst
 * six threads that create others without a pause.
 *
 * None of that is needed where the threads that could create others sleep meanwhile (rest.h), as
 * the caller does that waits for the answer about its own counter.
 */

#include "perf/process/rest.h"

/* Calls f, which makes the ioctls, until no thread was created meanwhile; once where nothing is
 * inherited (rest is NULL then), and where all who could create one have rested. True: nothing was
 * missed. */
bool gate_all(bool inherited, const Rest *rest, void (*f)(void *userdata), void *userdata);

/* The distances of the repetitions: each is twice the one before. */
#define GATE_AGAIN_USEC  (16 * USEC_PER_MSEC)
#define GATE_AGAIN_TIMES 7u

/* f is called whenever repetitions have become due: GATE_AGAIN_USEC from now is the first. */
void gate_on_again(void (*f)(void *userdata), void *userdata);
void gate_again(void);
