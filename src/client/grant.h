/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The message about a granted hold: what it has, and whether the counters were measured to be free.
 */

#include "client/hold-view.h"

/* The caller frees it. NULL: no memory. A view without a State is one that could not be read. */
char *grant_words(const HoldView *view, bool confirmed, uint64_t latency_usec);
