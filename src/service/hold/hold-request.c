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
        uint32_t uid;
        const char *tag;
        int cgroup, pidfd;
} HoldOptions;

enum {
        OPTION_UID = 7,
        OPTION_TAG,
        OPTION_CGROUP,
        OPTION_PIDFD,
};

static const OptionSpec option_specs[] = {
        { "pmus", "as", offsetof(HoldOptions, pmus) },
        { "cpus", "s", offsetof(HoldOptions, cpus) },
        { "counters", "u", offsetof(HoldOptions, counters) },
        { "mode", "s", offsetof(HoldOptions, mode) },
        { "wait_usec", "t", offsetof(HoldOptions, wait_usec) },
        { "yield_usec", "t", offsetof(HoldOptions, yield_usec) },
        { "best_effort", "b", offsetof(HoldOptions, best_effort) },
        [OPTION_UID] = { "uid", "u", offsetof(HoldOptions, uid) },
        [OPTION_TAG] = { "tag", "s", offsetof(HoldOptions, tag) },
        [OPTION_CGROUP] = { "cgroup", "h", offsetof(HoldOptions, cgroup) },
        [OPTION_PIDFD] = { "pidfd", "h", offsetof(HoldOptions, pidfd) },
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

/* A hold of nothing is granted to those who ask for whatever counters the machine has, but not to
 * those who rely on having some. */
static int emptiness_check(const HoldOptions *o, const HoldRequest *q, Refusal *why) {
        if (q->what.scope.n_parts > 0 || (o->counters == 0 && !q->exclusive))
                return 0;
        if (o->cpus)
                return refuse(why, REFUSAL_NOT_SUPPORTED,
                              "option 'cpus': no core PMU counts on these CPUs, so there is "
                              "nothing to hold; option 'pmus' holds other PMUs");
        return refuse(why, REFUSAL_NOT_SUPPORTED,
                      "this machine has no core PMU, so there is nothing to hold; option 'pmus' "
                      "holds other PMUs");
}

static int tie_read(const HoldOptions *o, HoldRequest *q, Refusal *why) {
        if (o->cgroup >= 0 && o->pidfd >= 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "options 'cgroup' and 'pidfd' exclude each other");
        if (o->cgroup >= 0)
                return hold_tie_to_cgroup(&q->tie, o->cgroup, why);
        return o->pidfd >= 0 ? hold_tie_to_process(&q->tie, o->pidfd, why) : 0;
}

static int behalf_read(const HoldOptions *o, uint64_t seen, HoldRequest *q, Refusal *why) {
        int r;

        q->on_behalf = seen >> OPTION_UID;
        q->uid = seen & 1u << OPTION_UID ? o->uid : HOLD_UID_CALLER;
        if (seen & 1u << OPTION_UID && q->uid == HOLD_UID_CALLER)
                return refuse(why, REFUSAL_INVALID_ARGS, "option 'uid': %u is not a valid uid",
                              q->uid);
        if (seen & 1u << OPTION_TAG && !*o->tag)
                return refuse(why, REFUSAL_INVALID_ARGS, "option 'tag' is empty");
        r = words_check("option 'tag'", o->tag, HOLD_TAG_MAX, why);
        if (r == 0)
                r = tie_read(o, q, why);
        if (r != 0)
                return r;
        q->tag = strdup(o->tag);
        return q->tag ? 0 : -ENOMEM;
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
        if (r == 0)
                r = emptiness_check(o, q, why);
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
        _cleanup_(hold_request_done) HoldRequest q = HOLD_REQUEST_NULL;
        _cleanup_(strings_freep) char **pmu_names = NULL;
        HoldOptions o = { .yield_usec = HOLD_YIELD_USEC, .tag = "", .cgroup = -1, .pidfd = -1 };
        const char *reason;
        uint64_t seen;
        int r;

        q.unattended = unattended;
        q.lifetime_usec = UINT64_MAX;
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
        if (r == 0)
                r = behalf_read(&o, seen, &q, why);
        if (r != 0)
                return r;
        *ret = q;
        q = HOLD_REQUEST_NULL;
        return 0;
}

void hold_request_done(HoldRequest *q) {
        free(q->reason);
        free(q->tag);
        hold_tie_done(&q->tie);
        scope_request_done(&q->what);
        *q = HOLD_REQUEST_NULL;
}

static bool names_equal(char *const *a, char *const *b) {
        while (*a && *b && strcmp(*a, *b) == 0)
                a++, b++;
        return !*a && !*b;
}

bool hold_request_equal(const HoldRequest *a, const HoldRequest *b) {
        return a->uid == b->uid && a->exclusive == b->exclusive && a->counters == b->counters &&
               a->unattended == b->unattended && strcmp(a->what.cpus, b->what.cpus) == 0 &&
               names_equal(a->what.pmus, b->what.pmus);
}
