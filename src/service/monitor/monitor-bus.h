/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * org.perfalloc1.Monitor.
 */

#include "service/monitor/monitor.h"

int monitor_bus_register(Monitors *monitors);
