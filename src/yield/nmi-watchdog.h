/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The kernel's NMI watchdog, which uses one counter of every CPU while sysctl kernel.nmi_watchdog
 * is 1.
 *
 * Only root's uid may write a sysctl, whatever the capabilities, so a small root unit does: it
 * writes 0, and the old value when it stops. It stops with the service, except for a restart. The
 * bridge starts, over D-Bus, a target that needs the unit and is bound to this service, and stops
 * the unit, and the target with it.
 */

#include <systemd/sd-bus.h>

#include "yield/bridge.h"

#define NMI_WATCHDOG_PATH   "/proc/sys/kernel/nmi_watchdog"
#define NMI_WATCHDOG_UNIT   "perfalloc-nmi-watchdog.service"
#define NMI_WATCHDOG_TARGET "perfalloc-nmi-watchdog.target"

/* The bus is borrowed and must outlive the bridge. */
int nmi_watchdog_new(const BridgeHost *host, sd_bus *bus, const char *path, Bridge **ret);
