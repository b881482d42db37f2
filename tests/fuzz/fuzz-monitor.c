/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files of monitors.d, on a machine of tests/sysfs and on this one. */

#include "fuzz.h"

#include "perf/pmu/test-fixture.h"
#include "service/monitor/monitor-spec.h"

static PmuTable tables[2];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        static char *copy;

        copy = fixture_tree("intel-hybrid");
        promise(pmu_table_load(&tables[0], copy) == 0);
        promise(pmu_table_load(&tables[1], "/sys") == 0);
        return 0;
}

static void spec_look(const PmuTable *pmus, const ConfigFile *file) {
        MonitorSpec spec = MONITOR_SPEC_NULL;
        int r = monitor_spec_read(&spec, pmus, file);

        promise(r >= 0);
        for (size_t i = 0; i < spec.n_events; i++)
                promise(spec.events[i].name && spec.events[i].pmu >= pmus->pmus &&
                        spec.events[i].pmu < pmus->pmus + pmus->n_pmus);
        if (r == 0) {
                promise(spec.n_events > 0);
                promise(spec.interval_usec >= USEC_PER_SEC);
                promise(spec.yields_to <= PLAN_NEVER);
                promise(!spec.has_cpus || (!cpuset_is_empty(&spec.cpus) &&
                                           cpuset_is_subset(&spec.cpus, &pmus->present)));
        }
        monitor_spec_done(&spec);
        promise(!spec.events && spec.n_events == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = fuzz_text(data, size);
        char name[] = "fuzzed.conf";
        ConfigFile file = { .path = name, .text = text };

        for (size_t i = 0; i < ELEMENTSOF(tables); i++)
                spec_look(&tables[i], &file);
        return 0;
}
