/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counters of a configured monitor: a set for each event of its file, or one for all.
 *
 * All sets in the service that are configured and have its name are its own. Those that are not in
 * sets are of an earlier version of the file, and count until the present ones do.
 */

#include "service/counter/counter-object.h"
#include "service/monitor/monitor-spec.h"

typedef struct ConfiguredSets ConfiguredSets;

struct ConfiguredSets {
        Counters *counters;
        const char *name;
        CounterSet **sets;
        size_t n;
};

/* Finds the sets that count already what the spec says, whatever their priority, and makes the
 * others. One that cannot be opened now is in State error. A refusal: nothing has changed. */
int configured_sets_open(ConfiguredSets *s, const MonitorSpec *spec, Refusal *why);

/* Tries again what is in error. Once all counts, the sets of earlier versions are closed: true. */
bool configured_sets_retry(ConfiguredSets *s);

void configured_sets_done(ConfiguredSets *s); /* the counters stay */

/* Closes all configured sets whose name has gone. */
void configured_sets_close(Counters *counters,
                           bool (*has_gone)(const void *userdata, const char *name),
                           const void *userdata);
