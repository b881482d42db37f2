/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Monitors that count all the time because the administrator says so: one for each file
 * monitors.d/NAME.conf, see perfallocd.conf(5). They belong to root.
 *
 * Over a restart of the service they go on like other counters, and are taken over when their file
 * is read and still says the same; what it does not say any more is closed then.
 */

#include "service/counter/counter-object.h"

typedef struct Configured Configured;
typedef struct ConfiguredMonitors ConfiguredMonitors;

struct ConfiguredMonitors {
        Counters *counters;
        LIST_HEAD(, Configured) list;
};

/* Reads the directory again: what has not changed goes on counting, what has is closed and opened
 * anew, what has gone is closed. A file that is wrong is refused as a whole, said in the journal;
 * an earlier version of it stays. -ENOMEM. */
int configured_load(ConfiguredMonitors *all, const char *directory);

void configured_done(ConfiguredMonitors *all); /* their counters are counters_done()'s */
