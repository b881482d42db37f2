/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-use.h"

#include "perf/pmu/kernel.h"
#include "perf/pmu/trial.h"

typedef struct Beside {
        const Pmu *pmu;
        unsigned cpu;
        struct perf_event_attr attr;
} Beside;

/* Whether it fits into a group with these counters taken: 1, 0, or -errno for want of memory or
 * descriptors. */
static int fits_beside(const Beside *b, unsigned general, uint32_t fixed) {
        Trial t = {};
        int r = trial_open_group(&t, b->pmu, (Shape){ .general = general, .fixed = fixed }, b->cpu);

        if (r == 0)
                r = trial_add(&t, &b->attr, b->cpu);
        trial_close(&t);
        return trial_is_our_fault(r) ? r : r == 0;
}

/* How many general counters must be left for it, where those of the mask are taken; more than all:
 * it fits with none. */
static int general_needed(const Beside *b, uint32_t fixed) {
        for (unsigned n = 0; n <= b->pmu->counters; n++) {
                int r = fits_beside(b, b->pmu->counters - n, fixed);

                if (r != 0)
                        return r < 0 ? r : (int) n;
        }
        return (int) b->pmu->counters + 1;
}

/* It has a counter of its own: which one is seen by which of the fixed events is in its way. */
static int use_of_fixed(const Beside *b, CounterUse *ret) {
        for (unsigned i = 0; i < b->pmu->n_fixed; i++) {
                uint32_t bit = UINT32_C(1) << i;
                int n = general_needed(b, bit);

                if (n < 0)
                        return n;
                if (n == 0)
                        continue;
                ret->takes.fixed = bit;
                ret->spill[i] = (uint8_t) (n <= (int) b->pmu->counters ? n : SHAPE_NO_SPILL);
                break;
        }
        return 0;
}

static int use_on_cpu(const Beside *b, CounterUse *ret) {
        CounterUse use = {};
        int n = general_needed(b, 0), r = 0;

        if (n == 0)
                r = use_of_fixed(b, &use);
        else
                use.takes.general = n > 0 && n <= (int) b->pmu->counters ? (unsigned) n : 1;
        if (n < 0 || r < 0)
                return MIN(n, r);
        *ret = use;
        return 0;
}

int counter_use_measure(const Pmu *pmu, const struct perf_event_attr *attr, CounterUse *ret) {
        Beside b = {
                .pmu = pmu,
                .attr = {
                        .size = sizeof(struct perf_event_attr),
                        .type = attr->type,
                        .config = attr->config,
                        .config1 = attr->config1,
                        .config2 = attr->config2,
                        .precise_ip = attr->precise_ip,
                        .exclude_user = attr->exclude_user,
                        .exclude_kernel = attr->exclude_kernel,
                        .exclude_hv = attr->exclude_hv,
                        .exclude_idle = attr->exclude_idle,
                        .exclude_host = attr->exclude_host,
                        .exclude_guest = attr->exclude_guest,
                },
        };

        *ret = (CounterUse){ .takes.general = !pmu->measured || pmu->counters > 0 };
        if (pmu->kind != PMU_CORE || !pmu->measured)
                return 0;
        CPU_FOREACH (cpu, &pmu->cpus)
                if (!kernel_is_offline((unsigned) cpu)) {
                        b.cpu = (unsigned) cpu;
                        return use_on_cpu(&b, ret);
                }
        return 0;
}
