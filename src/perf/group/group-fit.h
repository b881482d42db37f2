/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whether events can be on their PMU all at once.
 */

#include "perf/event/event.h"

/* REFUSAL_INVALID_EVENT: they cannot, which the kernel may not tell when they are opened. */
int group_fit_check(const Event *events, size_t n_events, Refusal *why);
