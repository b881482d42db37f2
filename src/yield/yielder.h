/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What yields to holds: the service's own counters, registered monitors, bridges.
 */

#include "core/plan.h"
#include "core/refusal.h"

typedef struct Yielder Yielder;
typedef struct YielderOps YielderOps;
typedef struct Yielders Yielders;

/* Written to the store: never renumber. */
typedef enum YielderState {
        YIELDER_COUNTING = 0,
        YIELDER_ASKED = 1, /* to yield, and has not answered yet */
        YIELDER_YIELDED = 2,
} YielderState;

struct YielderOps {
        /* yield() returns 0, and like resume() it takes the kernel's time: when there are many they
         * are told in slices (yielders.h). They are not told of a hold. */
        bool sliced;

        /* It was enrolled while active holds demand that it yields: it starts out yielded, and no
         * hold waits for it. May be NULL. */
        void (*start)(Yielder *y);

        /* Yields to the hold of that number until deadline_usec (CLOCK_MONOTONIC). 0: the counters
         * are free. 1: asked, and yielder_acknowledge() follows. Never fails: a yielder that cannot
         * yield stays asked, and is an obstacle from the deadline on. */
        int (*yield)(Yielder *y, uint64_t hold, uint64_t deadline_usec);

        /* Whether the hold that it was asked to yield to is over: if it must yield to another one,
         * yield() is called again. May be NULL. */
        bool (*is_over)(const Yielder *y);

        /* Counts again. Also called when the yielder was asked and has not answered. */
        void (*resume)(Yielder *y);

        /* Does the part of resume() that takes as long for several yielders as for one, for the
         * first ones of these. resume() of each follows in the same slice, in this order. Returns
         * how many are prepared, at least 1. May be NULL. */
        size_t (*prepare)(Yielder *const *yielders, size_t n);

        /* For Obstacles: its pid (0: none), and a description. */
        void (*describe)(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size);

        /* How long a yield takes at least: deadlines are not before that. May be NULL. */
        uint64_t (*grace)(const Yielder *y);
};

struct Yielder {
        const YielderOps *ops;
        Yielders *yielders; /* NULL: not enrolled */
        PlanMonitor plan;   /* scope, priority, class, use */
        bool every_hold;    /* yields to every hold, whatever its scope */
        bool fresh;         /* it has not started: yielders_settle() follows */
        YielderState state;
        bool absent;    /* a bridge with nobody on the other side */
        bool counted;   /* has yielded and is not absent, and Yielders.counted was told */
        CpuSet yielded; /* plan.by_cpu: where it has yielded */
};
