/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capacity.h"

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel-share.h"
#include "service/bus/host-state.h"

struct Capacities {
        Context *context;
        sd_event_source *measure; /* while any is to be measured */
        bool known[];             /* by PMU: there is nothing more to be measured */
};

/* The ledger must know it before the first hold. */
static int capacity_tell(Context *context, const Pmu *pmu) {
        /* the watchdog's counter is promised where it is lent */
        Shape kept = context->config.bridges.nmi_watchdog ? SHAPE_NULL
                                                          : kernel_share(pmu, KERNEL_SHARE_PATH);
        Shape left = shape_without(pmu_whole(pmu), kept);
        uint64_t counters = !pmu->measured       ? SLOT_UNKNOWN
                            : pmu->counters == 0 ? SLOT_UNLIMITED
                                                 : left.general;
        int r = ledger_set_fixed(&context->ledger, pmu->index, left.fixed);

        return r < 0 ? r : ledger_set_capacity(&context->ledger, pmu->index, counters);
}

/* 0: what can be known of it is known. CAPACITY_E_OFFLINE: not yet. -ENOMEM. */
static int capacity_learn(Context *context, Pmu *pmu) {
        /* Nobody is in the way of what core PMUs are measured with. Of others, one that an earlier
         * run could not measure may be free now. */
        int k, r = pmu->measured && pmu->kind != PMU_CORE ? 0
                                                          : capacity_measure(&context->pmus, pmu);

        if (r < 0)
                return r;
        kernel_share_look(pmu, KERNEL_SHARE_PATH, KERNEL_SHARE_CPUS);
        k = capacity_tell(context, pmu);
        return k < 0 ? k : r;
}

int capacities_need(Capacities *c) {
        Context *context = c->context;
        bool news = false, all = true;

        if (!c->measure)
                return 0;
        for (size_t i = 0; i < context->pmus.n_pmus; i++) {
                int r = c->known[i] ? 0 : capacity_learn(context, &context->pmus.pmus[i]);

                if (r < 0)
                        return r;
                news |= r == 0 && !c->known[i];
                c->known[i] = r == 0;
                all &= c->known[i];
        }
        if (all)
                c->measure = sd_event_source_disable_unref(c->measure);
        if (news)
                host_state_save(context);
        return 0;
}

int capacities_refresh(Capacities *c) {
        const PmuTable *pmus = &c->context->pmus;
        int r = capacities_need(c);

        for (size_t i = 0; i < pmus->n_pmus && r >= 0; i++)
                if (pmus->pmus[i].kind == PMU_CORE)
                        r = capacity_tell(c->context, &pmus->pmus[i]);
        return r;
}

static int capacities_due(sd_event_source *source, uint64_t usec, void *userdata) {
        int r = capacities_need(userdata);

        if (r < 0) { /* there may be memory later */
                (void) sd_event_source_set_time_relative(source, CAPACITIES_DELAY_USEC);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

static int capacities_start(Capacities *c) {
        int r, known = host_state_pmus(c->context);

        if (known < 0)
                return known;
        r = sd_event_add_time_relative(c->context->event, &c->measure, CLOCK_MONOTONIC,
                                       CAPACITIES_DELAY_USEC, 0, capacities_due, c);
        if (r >= 0)
                r = sd_event_source_set_priority(c->measure, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0 && known > 0)
                r = capacities_need(c);
        return MIN(r, 0);
}

int capacities_new(Context *context, Capacities **ret) {
        Capacities *c = calloc(1, sizeof(*c) + context->pmus.n_pmus * sizeof(bool));
        int r;

        if (!c)
                return -ENOMEM;
        c->context = context;
        r = capacities_start(c);
        if (r < 0) {
                capacities_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

Capacities *capacities_free(Capacities *c) {
        if (!c)
                return NULL;
        sd_event_source_disable_unref(c->measure);
        free(c);
        return NULL;
}
