/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The interface of whoever gives way: the service's own counters, registered monitors, bridges.
 */

#include "core/plan.h"
#include "core/refusal.h"

typedef struct Yielder Yielder;
typedef struct YielderOps YielderOps;
typedef struct Yielders Yielders;

typedef enum YielderState {
        YIELDER_COUNTING,
        YIELDER_ASKED, /* to yield, and has not answered yet */
        YIELDER_YIELDED,
} YielderState;

struct YielderOps {
        /* Give way, on account of hold number hold, until deadline_usec (CLOCK_MONOTONIC). 0: done,
         * the counters are free. 1: asked, yielder_acknowledge() follows. Never fails: who cannot
         * give way stays asked, and becomes an obstacle when the time is up. */
        int (*yield)(Yielder *y, uint64_t hold, uint64_t deadline_usec);

        /* Go on. Also called for one that was asked and has not answered. */
        void (*resume)(Yielder *y);

        /* Whose it is, for Obstacles: the pid (0: nobody's) and, in words, who. */
        void (*describe)(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size);

        /* For how long it takes in any case, if it were asked now: no deadline is to be before
         * that. May be NULL. */
        uint64_t (*grace)(const Yielder *y);
};

struct Yielder {
        const YielderOps *ops;
        Yielders *roster; /* NULL while not enrolled */
        PlanMonitor plan; /* scope, priority, class, use */
        bool every_hold;  /* gives way to every hold, whatever its scope */
        YielderState state;
};
