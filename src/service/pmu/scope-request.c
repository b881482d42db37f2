/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scope-request.h"

#include <string.h>

#include "service/util/options.h"

/* The CPUs of the option; an empty set means all. */
static int cpus_read(const PmuTable *pmus, const char *list, CpuSet *ret, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int r;

        if (list) {
                r = cpuset_parse(&cpus, list, why);
                if (r != 0)
                        return r > 0 ? refusal_prefix(why, "option 'cpus': ") : r;
                if (cpuset_is_empty(&cpus))
                        return refuse(why, REFUSAL_INVALID_ARGS, "option 'cpus' is empty");
        }
        CPU_FOREACH (cpu, &cpus)
                if (!cpuset_has(&pmus->present, (unsigned) cpu))
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "option 'cpus': this machine has no CPU %d", cpu);
        *ret = cpus;
        cpus = CPUSET_NULL;
        return 0;
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

static int names_check(const PmuTable *pmus, char *const *names, Refusal *why) {
        size_t n = 0;

        for (; names && names[n]; n++) {
                if (n >= pmus->n_pmus)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "option 'pmus' names more PMUs than this machine has");
                if (!pmu_table_find(pmus, names[n]))
                        return refuse_pmu(pmus, names[n], why);
        }
        if (names && n == 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "option 'pmus' is empty");
        return 0;
}

static bool names_have(char *const *names, const char *name) {
        for (; names && *names; names++)
                if (strcmp(*names, name) == 0)
                        return true;
        return false;
}

/* Leaves out a PMU that has none of the CPUs, unless the client named it. */
static int request_add_pmu(ScopeRequest *q, const Pmu *pmu, const CpuSet *cpus, bool named,
                           Refusal *why) {
        _cleanup_(cpuset_done) CpuSet both = CPUSET_NULL;
        int r;

        r = cpuset_intersect(&both, &pmu->cpus, cpuset_is_empty(cpus) ? &pmu->cpus : cpus);
        if (r < 0)
                return r;
        if (!cpuset_is_empty(&both))
                return scope_add(&q->scope, pmu->index, &both);
        return named ? refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'cpus': PMU %s counts on none of them", pmu->name)
                     : 0;
}

static int request_add_pmus(ScopeRequest *q, const PmuTable *pmus, char *const *names,
                            const CpuSet *cpus, Refusal *why) {
        size_t n = 0;

        q->pmus = calloc(pmus->n_pmus + 1, sizeof(char *));
        if (!q->pmus)
                return -ENOMEM;
        for (size_t i = 0; i < pmus->n_pmus; i++) {
                const Pmu *pmu = &pmus->pmus[i];
                int r;

                if (names ? !names_have(names, pmu->name) : pmu->kind != PMU_CORE)
                        continue;
                r = request_add_pmu(q, pmu, cpus, names != NULL, why);
                if (r != 0)
                        return r;
                if (!scope_find(&q->scope, pmu->index))
                        continue;
                q->pmus[n] = strdup(pmu->name);
                if (!q->pmus[n++])
                        return -ENOMEM;
        }
        return 0;
}

static bool pmus_have_core(const PmuTable *pmus) {
        for (size_t i = 0; i < pmus->n_pmus; i++)
                if (pmus->pmus[i].kind == PMU_CORE)
                        return true;
        return false;
}

int scope_request_read(const PmuTable *pmus, char *const *names, const char *list,
                       ScopeRequest *ret, Refusal *why) {
        _cleanup_(scope_request_done) ScopeRequest q = SCOPE_REQUEST_NULL;
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int r;

        r = names_check(pmus, names, why);
        if (r == 0)
                r = cpus_read(pmus, list, &cpus, why);
        if (r == 0)
                r = request_add_pmus(&q, pmus, names, &cpus, why);
        if (r == 0 && !names && q.scope.n_parts == 0 && pmus_have_core(pmus))
                r = refuse(why, REFUSAL_INVALID_ARGS,
                           "option 'cpus': no core PMU counts on any of them");
        if (r == 0)
                r = cpuset_format(cpuset_is_empty(&cpus) ? &pmus->present : &cpus, &q.cpus);
        if (r != 0)
                return r;
        *ret = q;
        q = SCOPE_REQUEST_NULL;
        return 0;
}

void scope_request_done(ScopeRequest *q) {
        scope_done(&q->scope);
        strings_free(q->pmus);
        free(q->cpus);
        *q = SCOPE_REQUEST_NULL;
}

void scope_request_ask(const ScopeRequest *q, Asked *ret) {
        for (char **name = q->pmus; name && *name; name++)
                asked_add(ret->pmus, *name);
        if (*q->cpus)
                asked_add(ret->cpus, q->cpus);
}

/* ---- across restarts ---- */

void scope_request_pack(Pack *p, const ScopeRequest *q, const PmuTable *pmus) {
        for (size_t i = 0; i < q->scope.n_parts; i++) {
                const ScopePart *part = &q->scope.parts[i];
                _cleanup_free_ char *cpus = NULL;
                size_t begin = pack_begin(p, "part");

                if (cpuset_format(&part->cpus, &cpus) < 0)
                        p->failed = true;
                pack_string(p, "pmu", pmus->pmus[part->pmu].name);
                pack_string(p, "cpus", cpus);
                pack_end(p, begin);
        }
        for (char **name = q->pmus; name && *name; name++) {
                size_t begin = pack_begin(p, "pmu");

                pack_string(p, "name", *name);
                pack_end(p, begin);
        }
        pack_string(p, "cpus", q->cpus);
}

static int unpack_part(const Unpack *u, const PmuTable *pmus, Scope *scope) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        const char *name = unpack_string(u, "pmu"), *list = unpack_string(u, "cpus");
        const Pmu *pmu = name ? pmu_table_find(pmus, name) : NULL;
        _cleanup_(cpuset_done) CpuSet there = CPUSET_NULL;
        int r;

        if (!pmu || !list)
                return 0;
        r = cpuset_parse(&cpus, list, NULL);
        if (r > 0)
                return -EBADMSG;
        if (r == 0)
                r = cpuset_intersect(&there, &cpus, &pmu->cpus);
        if (r < 0 || cpuset_is_empty(&there))
                return r;
        return scope_add(scope, pmu->index, &there);
}

static int unpack_names(const Unpack *u, char ***ret) {
        size_t place = 0, n = 0;
        Unpack pmu;

        while (unpack_next(u, "pmu", &place, &pmu))
                n++;
        *ret = calloc(n + 1, sizeof(char *));
        if (!*ret)
                return -ENOMEM;
        place = n = 0;
        while (unpack_next(u, "pmu", &place, &pmu)) {
                (*ret)[n] = strdup(unpack_string(&pmu, "name") ?: "");
                if (!(*ret)[n++])
                        return -ENOMEM;
        }
        return 0;
}

int scope_request_unpack(const Unpack *u, const PmuTable *pmus, ScopeRequest *ret) {
        _cleanup_(scope_request_done) ScopeRequest q = SCOPE_REQUEST_NULL;
        size_t place = 0;
        Unpack part;
        int r = 0;

        while (r >= 0 && unpack_next(u, "part", &place, &part))
                r = unpack_part(&part, pmus, &q.scope);
        if (r >= 0)
                r = unpack_names(u, &q.pmus);
        if (r < 0)
                return r;
        q.cpus = strdup(unpack_string(u, "cpus") ?: "");
        if (!q.cpus)
                return -ENOMEM;
        *ret = q;
        q = SCOPE_REQUEST_NULL;
        return 0;
}
