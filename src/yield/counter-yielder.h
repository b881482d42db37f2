/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service's own counters of role monitor: a group that yields at once, without fail.
 */

#include "perf/group/group.h"
#include "yield/yielders.h"

typedef struct CounterYielder CounterYielder;

struct CounterYielder {
        Yielder yielder;
        Group *group;
        CounterUse *uses; /* of plan */
        /* it has yielded, resumed, or failed to resume (group->error) */
        void (*changed)(void *userdata);
        void *userdata;
};

/* Takes the group over, also on failure; scope is borrowed and must outlive the yielder. The group
 * starts yielded if active holds demand it. seq: plan.seq of an earlier run, else 0. */
int counter_yielder_new(Yielders *yielders, Group *group, const Scope *scope, uint32_t priority,
                        PlanClass yields_to, uint64_t seq, CounterYielder **ret);
CounterYielder *counter_yielder_free(CounterYielder *m);

/* Tries again what failed, or was not done in an earlier run, unless its turn to yield or to resume
 * comes anyway. True: the group counts, or will. */
bool counter_yielder_retry(CounterYielder *m);
