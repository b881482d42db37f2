/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Configured monitors: counters that count all the time because the administrator says so. There is
 * one for each file monitors.d/NAME.conf (perfallocd.conf(5)). They belong to root.
 *
 * Over a restart of the service they go on like other counters. When its file is read and says the
 * same, a monitor is taken over; what no file says any more is closed then.
 */

#include "service/counter/counter-object.h"

typedef struct ConfiguredMonitor ConfiguredMonitor;
typedef struct ConfiguredMonitors ConfiguredMonitors;

struct ConfiguredMonitors {
        Counters *counters;
        LIST_HEAD(, ConfiguredMonitor) list;
};

/* Reads the directory again. Unchanged monitors go on counting, changed ones are closed and opened
 * anew, and those without a file are closed. An invalid file is refused as a whole and logged; its
 * earlier version stays. -ENOMEM. */
int configured_load(ConfiguredMonitors *all, const char *directory);

void configured_done(ConfiguredMonitors *all); /* counters_done() closes their counters */
