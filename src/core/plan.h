/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decides which monitors must yield to the active holds of a ledger.
 *
 * All monitors yield a slot of which a hold has all counters. Where holds have only a number of
 * counters, monitors that fit into the rest stay, the highest priority first, then the oldest. The
 * number is one of general counters: a monitor that counts in a fixed one is in nobody's way, the
 * second one of the same event takes a general one.
 */

#include "core/ledger.h"
#include "core/shape.h"

typedef struct PlanMonitor PlanMonitor;

/* To which holds a monitor yields. Written to the store: never renumber. */
typedef enum PlanClass {
        PLAN_ALWAYS = 0,
        PLAN_EXCLUSIVE = 1, /* only to exclusive ones */
        PLAN_NEVER = 2,
        _PLAN_CLASS_MAX,
} PlanClass;

struct PlanMonitor {
        const Scope *scope; /* NULL: empty */
        bool by_cpu;        /* it can yield on some CPUs and count on the others */
        uint32_t priority;
        PlanClass klass;
        CounterUse use;         /* counters that it takes on each slot, */
        const CounterUse *uses; /* or on those of each part of the scope; NULL: use */
        uint64_t seq;           /* lower is older */
        bool must;              /* result: it must yield; by_cpu: on one CPU at least */
        CpuSet where; /* result, by_cpu: on which CPUs; plan_monitor_init() makes the room */
};

/* Before the first plan: -ENOMEM. */
int plan_monitor_init(PlanMonitor *m);
void plan_monitor_done(PlanMonitor *m);

/* Sets must and where of all monitors, which are sorted by descending priority, then ascending seq.
 * Monitors whose class lets them stay use counters first, whatever their priority: what is promised
 * must be free beside them. On slots of unknown capacity all monitors of PLAN_ALWAYS yield.
 *
 * Returns 0: the scratch space is in the slots, so nothing can fail. */
int plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n);
