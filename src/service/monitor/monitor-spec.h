/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a file of monitors.d says; see perfallocd.conf(5).
 */

#include "core/plan.h"
#include "perf/event/event.h"
#include "service/util/config-file.h"

typedef struct MonitorSpec MonitorSpec;

struct MonitorSpec {
        const PmuTable *pmus;
        Event *events;
        size_t n_events;
        CpuSet cpus; /* where has_cpus; otherwise all */
        bool has_cpus, group;
        PlanClass yields_to;
        uint32_t priority;
        uint64_t interval_usec; /* of what is told to the journal; UINT64_MAX: nothing is */
};

#define MONITOR_SPEC_NULL ((MonitorSpec){ .interval_usec = UINT64_MAX })

/* Reads the file into a spec that is null. 0: it is good, and names an event at least. Positive:
 * something is wrong with it, said in the journal. -ENOMEM. */
int monitor_spec_read(MonitorSpec *spec, const PmuTable *pmus, const ConfigFile *file);
void monitor_spec_done(MonitorSpec *spec);
