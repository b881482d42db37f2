/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service's own counters of role monitor: a group that gives way, at once and surely.
 */

#include "perf/group.h"
#include "yield/roster.h"

typedef struct OwnMonitor OwnMonitor;

struct OwnMonitor {
        Yielder yielder;
        Group *group;
        /* it has yielded, gone on, or failed to go on (group->error) */
        void (*changed)(void *userdata);
        void *userdata;
};

/* Takes the group over, also on failure; scope is borrowed and must outlive the monitor. When its
 * counters are held now the group starts yielded. seq: its age where it comes from an earlier run
 * of the service (plan.seq), else 0. */
int own_monitor_new(Roster *roster, Group *group, const Scope *scope, uint32_t priority,
                    PlanClass yields_to, uint64_t seq, OwnMonitor **ret);
OwnMonitor *own_monitor_free(OwnMonitor *m);

/* Tries again what failed, or has been left undone by an earlier run: true when the group counts
 * now. */
bool own_monitor_retry(OwnMonitor *m);
