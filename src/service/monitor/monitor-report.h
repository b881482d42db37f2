/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a monitor of monitors.d has counted, as a sentence for the journal.
 */

#include "core/reading.h"
#include "perf/event/event.h"

#define MONITOR_REPORT_MAX 1024

/* "Monitor night: 123 page-faults in 7200.0 CPU seconds." Values are in the unit of the event, if
 * it has one. Times are sums over the CPUs. Returns ret. */
const char *monitor_report(const char *monitor, const Event *event, const Reading *reading,
                           char ret[static MONITOR_REPORT_MAX]);
