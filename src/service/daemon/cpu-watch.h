/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPU hotplug: counters and holds follow the CPUs that come online and go offline.
 */

#include "service/daemon/manager.h"

typedef struct CpuWatch CpuWatch;

/* If the kernel sends no hotplug events, which is logged, nothing is followed. */
int cpu_watch_new(Manager *manager, CpuWatch **ret);
CpuWatch *cpu_watch_free(CpuWatch *w); /* returns NULL */
DEFINE_CLEANUP(CpuWatch *, cpu_watch_free)

/* After a restart: tells holds of the CPUs that have come online meanwhile. */
void cpu_watch_catch_up(Manager *manager);
