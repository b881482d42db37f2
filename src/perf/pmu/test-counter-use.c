/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/counter-use.h"

#include "perf/pmu/test-model.h"

static const struct {
        const char *machine;
        unsigned pmu;
        uint64_t config;
        unsigned general;  /* that it takes */
        const char *fixed; /* whose counter it has */
        unsigned spill;    /* what it takes where that is taken */
        bool raw, pair;
} uses[] = {
        { "intel", 0, PERF_COUNT_HW_BRANCH_MISSES, 1, NULL, 0 },
        { "intel", 0, PERF_COUNT_HW_INSTRUCTIONS, 0, "instructions", 1 },
        { "intel", 0, PERF_COUNT_HW_CPU_CYCLES, 0, "cycles", 1 },
        { "intel", 0, PERF_COUNT_HW_REF_CPU_CYCLES, 0, "ref-cycles", SHAPE_NO_SPILL },
        { "intel-0-fixed", 0, PERF_COUNT_HW_INSTRUCTIONS, 1, NULL, 0 },
        { "golden-cove", 0, PERF_COUNT_HW_CACHE_MISSES, 1, NULL, 0 },
        { "golden-cove", 0, 0x400, 0, "slots", SHAPE_NO_SPILL, .raw = true },
        { "zen", 0, PERF_COUNT_HW_CPU_CYCLES, 1, NULL, 0 },
        { "hybrid", 0, PERF_COUNT_HW_INSTRUCTIONS, 0, "instructions", 1 },
        { "hybrid", 1, PERF_COUNT_HW_INSTRUCTIONS, 0, "instructions", 1 },
        { "arm", 0, PERF_COUNT_HW_CPU_CYCLES, 0, "cycles", 1 },
        { "arm", 0, 0x11, 0, "cycles", 1, .raw = true },
        { "arm", 0, PERF_COUNT_HW_INSTRUCTIONS, 1, NULL, 0 },
        { "arm", 0, PERF_COUNT_HW_INSTRUCTIONS, 2, NULL, 0, .pair = true },
        { "arm", 0, PERF_COUNT_HW_CPU_CYCLES, 0, "cycles", 2, .pair = true },
        { "arm-qemu", 0, PERF_COUNT_HW_INSTRUCTIONS, 1, NULL, 0 },
        /* nothing is known of it, or there is no such event */
        { "riscv", 0, PERF_COUNT_HW_CPU_CYCLES, 1, NULL, 0 },
        { "zen", 0, PERF_COUNT_HW_REF_CPU_CYCLES, 1, NULL, 0 },
};

static void test_uses(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(uses); i++) {
                struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
                                                .config = uses[i].config,
                                                .config1 = uses[i].pair };
                Host h = {};
                CounterUse use;
                Pmu *pmu;

                host_boot(&h, uses[i].machine);
                pmu = host_pmu(&h, uses[i].pmu);
                if (uses[i].raw)
                        attr.type = pmu->type;
                else if (pmu->type != PERF_TYPE_RAW)
                        attr.config |= (uint64_t) pmu->type << PERF_PMU_TYPE_SHIFT;
                g_test_message("%s, %s: %#" G_GINT64_MODIFIER "x", uses[i].machine, pmu->name,
                               (guint64) attr.config);
                g_assert_cmpint(counter_use_measure(pmu, &attr, &use), ==, 0);
                g_assert_cmpuint(use.takes.general, ==, uses[i].general);
                g_assert_cmpuint(use.takes.fixed, ==,
                                 uses[i].fixed ? pmu_fixed_bit(pmu, uses[i].fixed) : 0);
                for (unsigned f = 0; f < SHAPE_FIXED_MAX; f++)
                        g_assert_cmpuint(use.spill[f], ==,
                                         use.takes.fixed & (1u << f) ? uses[i].spill : 0);
                g_assert_cmpuint(model_n_open(), ==, 0);
                host_halt(&h);
        }
}

static void test_elsewhere(void) {
        static const struct {
                PmuKind kind;
                bool measured;
                unsigned counters, general;
        } pmus[] = {
                { PMU_SOFTWARE, true, 0, 0 },   { PMU_TRACEPOINT, true, 0, 0 },
                { PMU_BREAKPOINT, true, 4, 1 }, { PMU_UNCORE, false, 0, 1 },
                { PMU_CORE, false, 0, 1 },
        };
        const struct perf_event_attr attr = {};

        for (size_t i = 0; i < G_N_ELEMENTS(pmus); i++) {
                const Pmu pmu = { .kind = pmus[i].kind,
                                  .measured = pmus[i].measured,
                                  .counters = pmus[i].counters };
                CounterUse use;

                g_assert_cmpint(counter_use_measure(&pmu, &attr, &use), ==, 0);
                g_assert_cmpuint(use.takes.general, ==, pmus[i].general);
                g_assert_cmpuint(use.takes.fixed, ==, 0);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/counter-use/is-what-the-kernel-would-take", test_uses);
        g_test_add_func("/counter-use/of-what-is-not-scheduled", test_elsewhere);
        return g_test_run();
}
