/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What an earlier run of the service knew of the host: the bus, the CPUs, the PMUs.
 *
 * Unique names are valid on one bus only. A PMU's capacity, and what the kernel keeps of it, can be
 * measured only while nobody counts, so the first measurement stays valid.
 */

#include "core/cpuset.h"
#include "service/bus/peer.h"
#include "service/store/store.h"
#include "service/util/context.h"

struct HostState {
        StoreItem item;
        bool same_bus;
        CpuSet was_offline; /* online now, and offline at some time since the earlier run */
        uint64_t n_unkept;  /* counters that end with this process */
};

/* Restores known capacities; the others are to be measured. 1: there was an earlier run, 0: there
 * was none, -ENOMEM. */
int host_state_pmus(Context *context);

/* Compares the bus and the CPUs with those of the earlier run. The bus must be connected. */
int host_state_bus(Context *context);

/* Writes a client to the store. */
void host_state_pack_peer(Pack *p, const Peer *peer);

/* A reference to a client of an earlier run. *ret is NULL if there is none, or it was on another
 * bus. The departure of a client meanwhile is noticed from the loop. */
int host_state_unpack_peer(Context *context, const Unpack *u, Peer **ret);

/* The set of online CPUs, or n_unkept, has changed. */
void host_state_save(Context *context);

int host_state_new(HostState **ret); /* -ENOMEM */
HostState *host_state_free(HostState *s);
