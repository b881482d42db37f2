/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Enabling and disabling events that threads inherit.
 *
 * The event of a new thread is a copy of its parent's, state included, and only afterwards joins
 * the list of the events that an ioctl reaches (inherit_event() in kernel/events/core.c). An ioctl
 * in between misses it, so the ioctls are repeated as long as threads are created.
 */

#include "core/util.h"

/* Calls f, which makes the ioctls, until no thread was created meanwhile; once where nothing is
 * inherited. */
void gate_all(bool inherited, void (*f)(void *userdata), void *userdata);
