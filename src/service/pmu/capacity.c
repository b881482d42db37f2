/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capacity.h"

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel-share.h"

/* The ledger has to know it before the first hold. */
static int capacity_tell(Service *s, const Pmu *pmu) {
        Shape left = shape_without(pmu_whole(pmu), kernel_share(pmu, KERNEL_SHARE_PATH));
        uint64_t counters = !pmu->measured       ? SLOT_UNKNOWN
                            : pmu->counters == 0 ? SLOT_UNLIMITED
                                                 : left.general;
        int r = ledger_set_fixed(&s->ledger, pmu->index, left.fixed);

        return r < 0 ? r : ledger_set_capacity(&s->ledger, pmu->index, counters);
}

int capacities_need(Service *s) {
        if (!s->measure)
                return 0;
        for (size_t i = 0; i < s->pmus.n_pmus; i++) {
                Pmu *pmu = &s->pmus.pmus[i];
                /* Nobody is in the way of what core PMUs are measured with. Of others, one that an
                 * earlier run could not measure may be free now. */
                int r = pmu->measured && pmu->kind != PMU_CORE ? 0
                                                               : capacity_measure(&s->pmus, pmu);

                if (r >= 0)
                        r = capacity_tell(s, pmu);
                if (r < 0)
                        return r;
        }
        s->measure = sd_event_source_disable_unref(s->measure);
        host_state_save(s);
        return 0;
}

static int capacities_due(sd_event_source *source, uint64_t usec, void *userdata) {
        int r = capacities_need(userdata);

        if (r < 0) { /* there may be memory later */
                (void) sd_event_source_set_time_relative(source, CAPACITIES_DELAY_USEC);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

int capacities_init(Service *s) {
        int r, recalled = host_state_pmus(s);

        if (recalled < 0)
                return recalled;
        r = sd_event_add_time_relative(s->event, &s->measure, CLOCK_MONOTONIC,
                                       CAPACITIES_DELAY_USEC, 0, capacities_due, s);
        if (r >= 0)
                r = sd_event_source_set_priority(s->measure, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0 && recalled > 0)
                r = capacities_need(s);
        return MIN(r, 0);
}
