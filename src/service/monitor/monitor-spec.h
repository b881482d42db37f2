/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The content of a file in monitors.d (perfallocd.conf(5)).
 */

#include "core/plan.h"
#include "perf/event/event.h"
#include "service/util/config-file.h"

typedef struct MonitorSpec MonitorSpec;

struct MonitorSpec {
        const PmuTable *pmus;
        Event *events;
        size_t n_events;
        CpuSet cpus; /* if has_cpus; otherwise all */
        bool has_cpus, group;
        PlanClass yields_to;
        uint32_t priority;
        uint64_t interval_usec; /* of log entries; UINT64_MAX: none */
};

#define MONITOR_SPEC_NULL ((MonitorSpec){ .interval_usec = UINT64_MAX })

/* Reads the file into a spec that is MONITOR_SPEC_NULL. 0: it is valid, and names at least one
 * event. Positive: it is invalid, which is logged. -ENOMEM. */
int monitor_spec_read(MonitorSpec *spec, const PmuTable *pmus, const ConfigFile *file);
void monitor_spec_done(MonitorSpec *spec);
