/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tells when a CPU has come online or gone offline: the kernel's uevents
 * "online@/devices/system/cpu/cpuN" and "offline@...". Needs no privilege.
 */

#include "core/util.h"

/* A descriptor that becomes readable, or -errno. A filter in the kernel keeps other uevents from
 * waking us. */
int hotplug_open(void);

/* Reads what is there, without waiting: whether any of it is about a CPU. A flood that was lost
 * counts as such. */
bool hotplug_read(int fd);
