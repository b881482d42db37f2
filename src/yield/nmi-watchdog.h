/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The kernel's NMI watchdog, which has one counter of every CPU while sysctl kernel.nmi_watchdog
 * is 1.
 *
 * A sysctl obeys root's uid and no capability, so a small root unit writes it, and what it was when
 * the unit stops; it stops with the service, but not for a restart. The bridge starts and
 * stops the unit over D-Bus.
 */

#include <systemd/sd-bus.h>

#include "yield/bridge.h"

#define NMI_WATCHDOG_PATH "/proc/sys/kernel/nmi_watchdog"
#define NMI_WATCHDOG_UNIT "perfalloc-nmi-watchdog.service"

/* The bus is borrowed and must outlive the bridge. */
int nmi_watchdog_new(const BridgeHost *host, sd_bus *bus, const char *path, Bridge **ret);
