/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-request.h"

#include <string.h>

#include "service/options.h"

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

static int reason_check(const char *reason, Refusal *why) {
        if (strlen(reason) > HOLD_REASON_MAX)
                return refuse(why, REFUSAL_INVALID_ARGS, "the reason has more than %u bytes",
                              HOLD_REASON_MAX);
        for (const char *p = reason; *p; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "the reason has a control character at byte %zu",
                                      (size_t) (p - reason));
        return 0;
}

/* The CPUs that were asked for; an empty set: all, those that come online later too. */
static int cpus_read(const PmuTable *pmus, const HoldOptions *o, CpuSet *ret, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int r;

        if (o->cpus) {
                r = cpuset_parse(&cpus, o->cpus, why);
                if (r != 0)
                        return r;
                if (cpuset_is_empty(&cpus))
                        return refuse(why, REFUSAL_INVALID_ARGS, "option 'cpus' names no CPU");
        }
        CPU_FOREACH(cpu, &cpus)
                if (!cpuset_has(&pmus->present, (unsigned) cpu))
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "option 'cpus': this machine has no CPU %d", cpu);
        *ret = cpus;
        cpus = CPUSET_NULL;
        return 0;
}

static int request_add_pmu(HoldRequest *q, const Pmu *pmu, const CpuSet *cpus, bool named,
                           Refusal *why) {
        _cleanup_(cpuset_done) CpuSet both = CPUSET_NULL;
        int r;

        r = cpuset_intersect(&both, &pmu->cpus, cpuset_is_empty(cpus) ? &pmu->cpus : cpus);
        if (r < 0)
                return r;
        if (cpuset_is_empty(&both))
                return named ? refuse(why, REFUSAL_INVALID_ARGS,
                                      "option 'cpus': PMU %s counts on none of them", pmu->name)
                             : 0;
        if (pmu->measured && pmu->counters > 0 && q->counters > pmu->counters)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'counters': %u is more than the %u of PMU %s", q->counters,
                              pmu->counters, pmu->name);
        return scope_add(&q->scope, pmu->index, &both);
}

static int refuse_pmu(const PmuTable *pmus, const char *name, Refusal *why) {
        char known[512] = "";

        for (size_t i = 0; i < pmus->n_pmus; i++) {
                (void) strncat(known, i > 0 ? ", " : "", sizeof(known) - strlen(known) - 1);
                (void) strncat(known, pmus->pmus[i].name, sizeof(known) - strlen(known) - 1);
        }
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "option 'pmus': this machine has no PMU '%.64s' (it has: %s)", name, known);
}

static int pmus_read(const PmuTable *pmus, const HoldOptions *o, const CpuSet *cpus, HoldRequest *q,
                     Refusal *why) {
        size_t n = 0;

        q->pmus = calloc(pmus->n_pmus + 1, sizeof(char *));
        if (!q->pmus)
                return -ENOMEM;
        for (size_t i = 0; o->pmus && o->pmus[i]; i++)
                if (!pmu_table_find(pmus, o->pmus[i]))
                        return refuse_pmu(pmus, o->pmus[i], why);
        if (o->pmus && !o->pmus[0])
                return refuse(why, REFUSAL_INVALID_ARGS, "option 'pmus' names no PMU");

        for (size_t i = 0; i < pmus->n_pmus; i++) {
                const Pmu *pmu = &pmus->pmus[i];
                bool named = false;
                int r;

                for (char **name = o->pmus; name && *name; name++)
                        named |= strcmp(*name, pmu->name) == 0;
                if (!named && (o->pmus || pmu->kind != PMU_CORE))
                        continue;
                r = request_add_pmu(q, pmu, cpus, named, why);
                if (r != 0)
                        return r;
                q->pmus[n] = strdup(pmu->name);
                if (!q->pmus[n++])
                        return -ENOMEM;
        }
        return 0;
}

static int mode_read(const HoldOptions *o, HoldRequest *q, Refusal *why) {
        if (o->mode && strcmp(o->mode, "shared") != 0 && strcmp(o->mode, "exclusive") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'mode': '%.64s' is none of shared, exclusive", o->mode);
        q->exclusive = o->mode && strcmp(o->mode, "exclusive") == 0;
        return 0;
}

static int request_read(const PmuTable *pmus, const HoldOptions *o, const char *reason,
                        HoldRequest *q, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int r;

        r = reason_check(reason, why);
        if (r == 0)
                r = mode_read(o, q, why);
        if (r == 0)
                r = cpus_read(pmus, o, &cpus, why);
        if (r != 0)
                return r;
        q->counters = o->counters;
        q->wait_usec = o->wait_usec;
        q->yield_usec = o->yield_usec;
        q->best_effort = o->best_effort;
        q->reason = strdup(reason);
        if (!q->reason)
                return -ENOMEM;
        r = pmus_read(pmus, o, &cpus, q, why);
        if (r != 0)
                return r;
        return cpuset_format(cpuset_is_empty(&cpus) ? &pmus->present : &cpus, &q->cpus);
}

int hold_request_read(const PmuTable *pmus, sd_bus_message *m, bool unattended, HoldRequest *ret,
                      Refusal *why) {
        _cleanup_(hold_request_done) HoldRequest q = { .unattended = unattended,
                                                       .lifetime_usec = UINT64_MAX };
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
        free(q->cpus);
        strings_free(q->pmus);
        scope_done(&q->scope);
        *q = HOLD_REQUEST_NULL;
}
