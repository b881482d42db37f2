/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Event strings, on each machine that tests/sysfs describes and on this one. */

#include "fuzz.h"

#include "perf/event/event-parse.h"
#include "perf/pmu/test-fixture.h"

static const char *const trees[] = { "amd-uncore", "arm-big-little", "intel-hybrid", "server-256" };
static PmuTable tables[ELEMENTSOF(trees) + 1];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        static char *copies[ELEMENTSOF(trees)];

        for (size_t i = 0; i < ELEMENTSOF(trees); i++) {
                copies[i] = fixture_tree(trees[i]);
                promise(pmu_table_load(&tables[i], copies[i]) == 0);
        }
        promise(pmu_table_load(&tables[ELEMENTSOF(trees)], "/sys") == 0);
        return 0;
}

static void event_look(const PmuTable *pmus, const char *string) {
        _cleanup_(event_done) Event e = EVENT_NULL, copy = EVENT_NULL;
        Refusal why = REFUSAL_NULL;
        int r = event_parse(pmus, string, &e, &why);

        fuzz_outcome(r, &why);
        if (r > 0) {
                promise(!e.name && !e.pmu && !e.unit); /* as it was */
                return;
        }
        promise(strcmp(e.name, string) == 0 && strlen(string) <= EVENT_NAME_MAX);
        promise(e.pmu >= pmus->pmus && e.pmu < pmus->pmus + pmus->n_pmus);
        promise(e.attr.size == sizeof(e.attr) && !e.attr.disabled && e.unit);
        promise(event_copy(&copy, &e) == 0 && copy.name != e.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *string = fuzz_text(data, size);

        for (size_t i = 0; i < ELEMENTSOF(tables); i++)
                event_look(&tables[i], string);
        return 0;
}
