/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPUs that come online and go offline: counters and holds follow them.
 */

#include "service/daemon/manager.h"

/* Without hotplug events of the kernel, which is said in the journal, nothing is followed. */
int cpu_watch_new(Manager *manager, sd_event_source **ret);

/* After a restart: holds are told of CPUs that have come online meanwhile. */
void cpu_watch_catch_up(Manager *manager);
