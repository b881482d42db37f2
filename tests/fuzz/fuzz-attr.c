/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* struct perf_event_attr as a client sends it: a byte for the kind of the PMU, a byte for the size
 * that the kernel knows (in 8 bytes), the attr. */

#include "fuzz.h"

#include "perf/event/attr.h"

/* Whether nothing is needed for it. */
static bool needs_nothing(const AttrNeeds *needs) {
        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                if (needs->by[need])
                        return false;
        return true;
}

/* The most important rules, written again. */
static void attr_look(const Attr *a, const AttrNeeds *needs, AttrPmu pmu) {
        const struct perf_event_attr *known = &a->known;
        Attr confined = *a;

        promise(pmu != ATTR_PMU_PROBE && !known->sigtrap && !known->__reserved_2);
        promise(!(known->pinned || known->exclusive) || needs->by[ATTR_NEED_HOLD]);
        if (needs_nothing(needs)) {
                promise(known->exclude_kernel ||
                        (pmu == ATTR_PMU_BREAKPOINT && !known->sample_period &&
                         !(known->bp_addr >> 63)));
                promise(!(known->sample_type & (PERF_SAMPLE_RAW | PERF_SAMPLE_PHYS_ADDR |
                                                PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR)));
                promise(!(known->branch_sample_type & PERF_SAMPLE_BRANCH_KERNEL));
        }
        attr_confine(&confined);
        promise(!known->exclude_kernel || !(known->sample_type & PERF_SAMPLE_CALLCHAIN) ||
                confined.known.exclude_callchain_kernel);
        confined.known.exclude_callchain_kernel = known->exclude_callchain_kernel;
        promise(memcmp(&confined, a, sizeof(*a)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Refusal why = REFUSAL_NULL;
        AttrNeeds needs = ATTR_NEEDS_NULL;
        Attr a;
        int r;

        if (size < 2)
                return 0;
        r = attr_read(data + 2, size - 2, data[1] * 8u, &a, &why);
        fuzz_outcome(r, &why);
        if (r > 0)
                return 0;
        r = attr_rules_check(&a, data[0] % _ATTR_PMU_MAX, &needs, &why);
        fuzz_outcome(r, &why);
        if (r == 0)
                attr_look(&a, &needs, data[0] % _ATTR_PMU_MAX);
        return 0;
}
