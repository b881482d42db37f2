/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decides which monitors have to yield for the holds that are active in a ledger.
 *
 * A slot that a hold has in full is given up by all. Where only a number of counters is promised,
 * monitors stay as long as they fit into what is left, the highest priority first, of the same
 * priority the oldest. The number is one of general counters: a monitor that counts in a fixed one
 * is in nobody's way, the second one of the same event takes a general one.
 */

#include "core/ledger.h"
#include "core/shape.h"

typedef struct PlanMonitor PlanMonitor;

/* To which holds a monitor yields. */
typedef enum PlanClass {
        PLAN_ALWAYS,
        PLAN_EXCLUSIVE, /* only to exclusive ones */
        PLAN_NEVER,
        _PLAN_CLASS_MAX,
} PlanClass;

struct PlanMonitor {
        const Scope *scope; /* NULL: none */
        uint32_t priority;
        PlanClass klass;
        CounterUse use; /* counters that it takes on each slot */
        uint64_t seq;   /* lower is older */
        bool must;      /* out: it has to yield */
};

/* Sets must of all monitors, which are sorted: highest priority first, then lowest seq. Monitors
 * whose class lets them stay count first, whatever their priority, for the promise is about what is
 * left. On slots whose capacity is unknown all of class always yield.
 *
 * The scratch is in the slots: 0, it cannot fail. */
int plan_compute(const Ledger *l, PlanMonitor *const *sorted, size_t n);
