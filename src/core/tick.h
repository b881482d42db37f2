/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * When a sampler ticks, and which ticks it has missed. Nothing here reads a clock.
 *
 * A start and an interval fix a grid of slots: slot n is due at start + n * interval. A slot is
 * never taken early. A late tick takes the latest slot that is due and skips those before it, so
 * ticks come in no bursts and never shift the grid. Each receiver counts the slots it missed.
 */

#include "core/util.h"

typedef struct Tick Tick;
typedef struct TickCount TickCount;

#define TICK_NEVER UINT64_MAX

/* The longest interval and the farthest start, 10 years: added to the time since boot they cannot
 * overflow. */
#define TICK_FAR_USEC (10 * 366 * 24 * 3600 * USEC_PER_SEC)

struct Tick {
        uint64_t start_usec;
        uint64_t interval_usec; /* 0: slot 0 is the only one */
        uint64_t next;          /* the first slot that was neither taken nor skipped */
};

/* The ticks that one receiver was told of. A tick that could not be delivered counts as skipped. */
struct TickCount {
        uint64_t next; /* the slot after the last one told */
        uint64_t told;
        uint64_t missed;
};

/* When the next slot is due; TICK_NEVER when the only one has been taken. */
uint64_t tick_due(const Tick *t);

/* Takes the latest slot that is due now; false: none is. */
bool tick_take(Tick *t, uint64_t now_usec, uint64_t *ret_slot);

/* How many slots are between the last one told and this one. */
uint64_t tick_count_missed(const TickCount *c, uint64_t slot);

/* The receiver was told of the slot and of that number. */
void tick_count_tell(TickCount *c, uint64_t slot);
