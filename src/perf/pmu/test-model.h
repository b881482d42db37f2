/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests on the model: a machine with its sysfs tree, measured.
 */

#include "perf/pmu/capacity.h"
#include "perf/pmu/test-fixture.h"
#include "perf/pmu/test-kernel-model.h"

#include <glib.h>

typedef struct Host {
        char *tree;
        PmuTable table;
        const ModelMachine *machine;
} Host;

/* Its PMUs are not measured yet. */
_unused_ static void host_boot_only(Host *h, const char *name) {
        h->machine = model_machine(name);
        h->tree = fixture_tree(h->machine->tree);
        g_assert_cmpint(pmu_table_load(&h->table, h->tree), ==, 0);
        model_boot(name);
}

_unused_ static Pmu *host_pmu(const Host *h, unsigned i) {
        Pmu *pmu = pmu_table_find(&h->table, h->machine->pmus[i].name);

        g_assert_nonnull(pmu);
        return pmu;
}

_unused_ static unsigned host_n_pmus(const Host *h) {
        unsigned n = 0;

        while (n < MODEL_PMUS_MAX && h->machine->pmus[n].name)
                n++;
        return n;
}

_unused_ static void host_boot(Host *h, const char *name) {
        host_boot_only(h, name);
        for (unsigned i = 0; i < host_n_pmus(h); i++)
                g_assert_cmpint(capacity_measure(&h->table, host_pmu(h, i)), ==, 0);
}

_unused_ static void host_halt(Host *h) {
        model_halt();
        pmu_table_done(&h->table);
        fixture_done(h->tree);
}

_unused_ static char *fixed_names(const Pmu *pmu) {
        GString *names = g_string_new(NULL);

        for (unsigned i = 0; i < pmu->n_fixed; i++)
                g_string_append_printf(names, "%s%s", i > 0 ? " " : "", pmu->fixed[i].name);
        return g_string_free(names, false);
}

/* For model_each_call(): calls take long, as where the CPUs of a virtual machine wait for one
 * another. */
typedef struct Storm {
        uint64_t usec;
        unsigned n_calls; /* then it is over */
} Storm;

_unused_ static void storm(void *userdata) {
        Storm *s = userdata;

        if (s->n_calls == 0)
                return;
        s->n_calls--;
        model_pass(s->usec);
}
