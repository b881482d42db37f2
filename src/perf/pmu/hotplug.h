/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tells that a CPU has come online or gone offline, by the kernel's uevents
 * "online@/devices/system/cpu/cpuN" and "offline@...". Needs no privilege.
 */

#include "core/util.h"

/* A descriptor that becomes readable, or -errno. A socket filter drops most other uevents. */
int hotplug_open(void);

/* Reads what is queued, without waiting: whether any of it is about a CPU, or was lost. */
bool hotplug_read(int fd);
