/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The collecting end of a barrier (barrier.h), in a process of its own beside srun.
 */

#include "core/util.h"

#define BARRIER_LINE_MAX 1024 /* of a report and of an answer */

/* Returns when the barrier is over. listener: where nodes connect, non-blocking; control: numbers
 * of nodes to expect, and its end is srun's. */
void collect(int listener, int control, const char *key, const char *nodes, uint64_t timeout_usec);
