/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-request.h"

#include <string.h>

#include "service/util/options.h"

typedef struct HoldOptions {
        char **pmus;
        const char *cpus, *mode;
        uint32_t counters;
        uint64_t wait_usec, yield_usec;
        int best_effort;
} HoldOptions;

static const OptionSpec option_specs[] = {
        { "pmus", "as", offsetof(HoldOptions, pmus) },
        { "cpus", "s", offsetof(HoldOptions, cpus) },
        { "counters", "u", offsetof(HoldOptions, counters) },
        { "mode", "s", offsetof(HoldOptions, mode) },
        { "wait_usec", "t", offsetof(HoldOptions, wait_usec) },
        { "yield_usec", "t", offsetof(HoldOptions, yield_usec) },
        { "best_effort", "b", offsetof(HoldOptions, best_effort) },
};

static int mode_read(const HoldOptions *o, HoldRequest *q, Refusal *why) {
        if (o->mode && strcmp(o->mode, "shared") != 0 && strcmp(o->mode, "exclusive") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'mode': invalid value '%.64s' (one of shared, exclusive)",
                              o->mode);
        q->exclusive = o->mode && strcmp(o->mode, "exclusive") == 0;
        return 0;
}

static int counters_check(const PmuTable *pmus, const HoldOptions *o, const Scope *scope,
                          Refusal *why) {
        for (size_t i = 0; i < scope->n_parts; i++) {
                const Pmu *pmu = &pmus->pmus[scope->parts[i].pmu];

                if (pmu->measured && pmu->counters > 0 && o->counters > pmu->counters)
                        return refuse(
                                why, REFUSAL_INVALID_ARGS,
                                "option 'counters': %u is more than the %u general counters of "
                                "each CPU of PMU %s",
                                o->counters, pmu->counters, pmu->name);
        }
        return 0;
}

static int request_read(const PmuTable *pmus, const HoldOptions *o, const char *reason,
                        HoldRequest *q, Refusal *why) {
        int r;

        r = words_check("the reason", reason, HOLD_REASON_MAX, why);
        if (r == 0)
                r = mode_read(o, q, why);
        if (r == 0)
                r = scope_request_read(pmus, o->pmus, o->cpus, &q->what, why);
        if (r == 0)
                r = counters_check(pmus, o, &q->what.scope, why);
        if (r != 0)
                return r;
        q->counters = o->counters;
        q->wait_usec = o->wait_usec;
        q->yield_usec = o->yield_usec;
        q->best_effort = o->best_effort;
        q->reason = strdup(reason);
        return q->reason ? 0 : -ENOMEM;
}

int hold_request_read(const PmuTable *pmus, sd_bus_message *m, bool unattended, HoldRequest *ret,
                      Refusal *why) {
        _cleanup_(hold_request_done)
                HoldRequest q = { .unattended = unattended, .lifetime_usec = UINT64_MAX };
        _cleanup_(strings_freep) char **pmu_names = NULL;
        HoldOptions o = { .yield_usec = HOLD_YIELD_USEC };
        const char *reason;
        uint64_t seen;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_basic(m, 's', &reason);
        if (r >= 0 && unattended) {
                r = sd_bus_message_read_basic(m, 't', &q.lifetime_usec);
                if (q.lifetime_usec == 0)
                        q.lifetime_usec = UINT64_MAX;
        }
        if (r < 0)
                return r;
        r = options_read(m, option_specs, ELEMENTSOF(option_specs), &o, &seen, why);
        pmu_names = o.pmus;
        if (r == 0)
                r = request_read(pmus, &o, reason, &q, why);
        if (r != 0)
                return r;
        *ret = q;
        q = HOLD_REQUEST_NULL;
        return 0;
}

void hold_request_done(HoldRequest *q) {
        free(q->reason);
        scope_request_done(&q->what);
        *q = HOLD_REQUEST_NULL;
}
