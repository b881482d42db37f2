/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counting user space only where counting the kernel is not permitted, as perf(1) does.
 */

#include "core/util.h"

/* The event with the modifier u, which the caller frees. *ret is NULL if the event says itself
 * which privilege levels it counts, or is a breakpoint, whose address says it. -ENOMEM. */
int fallback_event(const char *event, char **ret);

/* The events, with the modifier u where they can have it; event_list_free() frees them. *ret is
 * NULL if none can. -ENOMEM. */
int fallback_events(char *const *events, char ***ret);
