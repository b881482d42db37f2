/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-units.h"

#include <stdio.h>
#include <string.h>

#define INSTANCES_MAX 1024u /* numbers that are looked for */

/* ---- instances ---- */

/* The PMU of the number; the name is at most EVENT_NAME_MAX long. */
static const Pmu *find_instance(const PmuTable *pmus, const char *string, size_t length,
                                unsigned number) {
        static const char *const prefixes[] = { "", "uncore_" };

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++) {
                char name[EVENT_NAME_MAX + 32];
                const Pmu *pmu;

                (void) snprintf(name, sizeof(name), "%s%.*s_%u", prefixes[i], (int) length, string,
                                number);
                pmu = pmu_table_find(pmus, name);
                if (pmu)
                        return pmu;
        }
        return NULL;
}

static int parse_instance(const PmuTable *pmus, const Pmu *pmu, const char *string,
                          EventParser parse, Event *ret, Refusal *why) {
        _cleanup_free_ char *single = NULL;
        char *name;
        int r;

        if (asprintf(&single, "%s%s", pmu->name, strchr(string, '/')) < 0) {
                single = NULL;
                return -ENOMEM;
        }
        r = parse(pmus, single, ret, why);
        if (r != 0)
                return r;
        name = strdup(string);
        if (!name) {
                event_done(ret);
                return -ENOMEM;
        }
        free(ret->name);
        ret->name = name;
        return 0;
}

static bool has_pmu(const PmuTable *pmus, const char *string, size_t length) {
        for (size_t i = 0; i < pmus->n_pmus; i++)
                if (strncmp(pmus->pmus[i].name, string, length) == 0 &&
                    pmus->pmus[i].name[length] == '\0')
                        return true;
        return false;
}

int event_parse_instances(const PmuTable *pmus, const char *string, EventParser parse, Event *ret,
                          Refusal *why) {
        _cleanup_(event_done) Event e = EVENT_NULL;
        size_t length = strcspn(string, "/");

        if (!string[length] || length == 0 || has_pmu(pmus, string, length))
                return -ENOENT;
        for (unsigned number = 0; number < INSTANCES_MAX; number++) {
                const Pmu *pmu = find_instance(pmus, string, length, number);
                Event one;
                int r;

                if (!pmu)
                        continue;
                r = parse_instance(pmus, pmu, string, parse, &one, why);
                if (r == 0 && e.name)
                        r = event_add_other(&e, &one);
                else if (r == 0)
                        e = one;
                if (r != 0)
                        return r;
        }
        if (!e.name)
                return -ENOENT;
        *ret = e;
        e = EVENT_NULL;
        return 0;
}

/* ---- hybrid CPUs ---- */

static bool names_no_pmu(const Event *e) {
        switch (e->attr.type) {
        case PERF_TYPE_HARDWARE:
        case PERF_TYPE_HW_CACHE:
                return e->attr.config >> PERF_PMU_TYPE_SHIFT == 0;
        case PERF_TYPE_RAW:
                return !strchr(e->name, '/');
        default:
                return false;
        }
}

static void event_put_on(Event *e, Pmu *pmu, bool by_cpu) {
        if (e->attr.type == PERF_TYPE_RAW)
                e->attr.type = pmu->type;
        else {
                e->attr.config |= (uint64_t) pmu->type << PERF_PMU_TYPE_SHIFT;
                e->by_cpu = by_cpu;
        }
        e->pmu = pmu;
}

int event_spread(const PmuTable *pmus, Event *e) {
        _cleanup_(event_done) Event plain = EVENT_NULL;
        bool by_cpu = true;
        size_t n_core = 0;
        int r = 0;

        for (size_t i = 0; i < pmus->n_pmus; i++)
                if (pmus->pmus[i].kind == PMU_CORE) {
                        n_core++;
                        by_cpu &= pmus->pmus[i].type != PERF_TYPE_RAW; /* not so on x86 */
                }
        if (n_core < 2 || !names_no_pmu(e))
                return 0;
        r = event_copy(&plain, e);
        if (r == 0)
                event_put_on(e, e->pmu, by_cpu);
        for (size_t i = 0; i < pmus->n_pmus && r == 0; i++) {
                Event other;

                if (pmus->pmus[i].kind != PMU_CORE || &pmus->pmus[i] == e->pmu)
                        continue;
                r = event_copy(&other, &plain);
                if (r != 0)
                        break;
                event_put_on(&other, &pmus->pmus[i], by_cpu);
                r = event_add_other(e, &other);
        }
        return r;
}
