/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Configured monitors: counters that count all the time because the administrator says so. There is
 * one for each file monitors.d/NAME.conf (perfallocd.conf(5)). They belong to root.
 *
 * Over a restart of the service they go on like other counters.
 */

#include "service/counter/counter-object.h"

typedef struct ConfiguredMonitor ConfiguredMonitor;
typedef struct ConfiguredMonitors ConfiguredMonitors;

struct ConfiguredMonitors {
        Counters *counters;
        LIST_HEAD(, ConfiguredMonitor) list;
        sd_event_source *retry; /* while one does not count */
};

/* Reads the directory again. What counts already what a file says goes on counting. What it no
 * longer says is closed once the rest counts. What cannot be opened, because other programs have
 * the counters, is in State error and tried again. Monitors without a file are closed. An invalid
 * file is refused as a whole and logged; its earlier version stays. -ENOMEM. */
int configured_load(ConfiguredMonitors *all, const char *directory);

void configured_done(ConfiguredMonitors *all); /* counters_done() closes their counters */
