/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What an earlier run of the service knew of the world around it: the bus, the CPUs, the PMUs.
 *
 * Names of clients mean the same only on the same bus. What a PMU has can be measured only when
 * nobody counts, so what was measured first goes on to be true.
 */

#include "core/cpuset.h"
#include "service/bus/peer.h"
#include "service/store/store.h"

typedef struct HostState HostState;
typedef struct Service Service;

struct HostState {
        StoreItem item;
        bool same_bus;
        CpuSet away; /* CPUs that are online and were not all the time since the earlier run */
};

/* The capacities that are known already; the others are to be measured. 1 when there was an earlier
 * run, 0, or -ENOMEM. */
int host_state_pmus(Service *s);

/* Once the bus is connected. */
int host_state_bus(Service *s);

/* The client of an earlier run by its unique name, or "" or NULL: a reference, or NULL when there
 * is none or it was on another bus. One that has left meanwhile leaves from the loop, as any other.
 */
int host_state_peer(Service *s, const char *name, uid_t uid, pid_t pid, Peer **ret);

/* All that is to go on is there again: tells holds of CPUs that have come online meanwhile. */
void host_state_cpus(Service *s);

/* Which CPUs are online has changed, or how many counters are not kept. */
void host_state_save(Service *s);

void host_state_done(Service *s);
