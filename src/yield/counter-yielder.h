/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service's own counters of role monitor: a group that gives way, at once and surely.
 */

#include "perf/group/group.h"
#include "yield/yielders.h"

typedef struct CounterYielder CounterYielder;

struct CounterYielder {
        Yielder yielder;
        Group *group;
        /* it has yielded, gone on, or failed to go on (group->error) */
        void (*changed)(void *userdata);
        void *userdata;
};

/* Takes the group over, also on failure; scope is borrowed and must outlive the monitor. When its
 * counters are held now the group starts yielded. seq: its age where it comes from an earlier run
 * of the service (plan.seq), else 0. */
int counter_yielder_new(Yielders *roster, Group *group, const Scope *scope, uint32_t priority,
                        PlanClass yields_to, uint64_t seq, CounterYielder **ret);
CounterYielder *counter_yielder_free(CounterYielder *m);

/* Tries again what failed, or has been left undone by an earlier run: true when the group counts
 * now. */
bool counter_yielder_retry(CounterYielder *m);
