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
#include "service/util/context.h"

struct HostState {
        StoreItem item;
        bool same_bus;
        CpuSet away; /* CPUs that are online and were not all the time since the earlier run */
        uint64_t n_unkept; /* counters that end with this process */
};

/* The capacities that are known already; the others are to be measured. 1 when there was an earlier
 * run, 0, or -ENOMEM. */
int host_state_pmus(Context *context);

/* Once the bus is connected. */
int host_state_bus(Context *context);

/* A client, as it is written to the store. */
void host_state_pack_peer(Pack *p, const Peer *peer);

/* The client of an earlier run: a reference, or NULL when there is none or it was on another bus. A
 * client that has left meanwhile leaves from the loop, as any other. */
int host_state_unpack_peer(Context *context, const Unpack *u, Peer **ret);

/* Which CPUs are online has changed, or how many counters are not kept. */
void host_state_save(Context *context);

int host_state_new(HostState **ret); /* -ENOMEM */
HostState *host_state_free(HostState *s);
