/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scope.h"

#include <string.h>

void scope_done(Scope *s) {
        for (size_t i = 0; i < s->n_parts; i++)
                cpuset_done(&s->parts[i].cpus);
        free(s->parts);
        *s = SCOPE_NULL;
}

/* The index at which the part of this PMU is or would be. */
static size_t scope_place(const Scope *s, unsigned pmu) {
        size_t i = 0;

        while (i < s->n_parts && s->parts[i].pmu < pmu)
                i++;
        return i;
}

static int part_extend(ScopePart *part, const CpuSet *cpus) {
        _cleanup_(cpuset_done) CpuSet all = CPUSET_NULL;
        int r;

        r = cpuset_copy(&all, &part->cpus);
        if (r < 0)
                return r;
        CPU_FOREACH (cpu, cpus) {
                r = cpuset_add(&all, (unsigned) cpu);
                if (r < 0)
                        return r;
        }
        cpuset_done(&part->cpus);
        part->cpus = all;
        all = CPUSET_NULL;
        return 0;
}

static int scope_insert(Scope *s, size_t place, unsigned pmu, const CpuSet *cpus) {
        ScopePart *parts;
        CpuSet copy;
        int r;

        parts = reallocarray(s->parts, s->n_parts + 1, sizeof(*parts));
        if (!parts)
                return -ENOMEM;
        s->parts = parts;
        r = cpuset_copy(&copy, cpus);
        if (r < 0)
                return r;
        memmove(parts + place + 1, parts + place, (s->n_parts - place) * sizeof(*parts));
        parts[place] = (ScopePart){ .pmu = pmu, .cpus = copy };
        s->n_parts++;
        return 0;
}

int scope_add(Scope *s, unsigned pmu, const CpuSet *cpus) {
        size_t place = scope_place(s, pmu);

        if (cpuset_is_empty(cpus))
                return 0;
        if (place < s->n_parts && s->parts[place].pmu == pmu)
                return part_extend(&s->parts[place], cpus);
        return scope_insert(s, place, pmu, cpus);
}

int scope_copy(Scope *ret, const Scope *s) {
        _cleanup_(scope_done) Scope copy = SCOPE_NULL;

        for (size_t i = 0; i < s->n_parts; i++) {
                int r = scope_add(&copy, s->parts[i].pmu, &s->parts[i].cpus);

                if (r < 0)
                        return r;
        }
        *ret = copy;
        copy = SCOPE_NULL;
        return 0;
}

const ScopePart *scope_find(const Scope *s, unsigned pmu) {
        size_t place = scope_place(s, pmu);

        return place < s->n_parts && s->parts[place].pmu == pmu ? &s->parts[place] : NULL;
}

bool scope_has(const Scope *s, unsigned pmu, unsigned cpu) {
        const ScopePart *part = scope_find(s, pmu);

        return part && cpuset_has(&part->cpus, cpu);
}

bool scope_overlaps(const Scope *a, const Scope *b) {
        for (size_t i = 0, j = 0; i < a->n_parts && j < b->n_parts;) {
                const ScopePart *x = &a->parts[i], *y = &b->parts[j];

                if (x->pmu == y->pmu && cpuset_intersects(&x->cpus, &y->cpus))
                        return true;
                if (x->pmu <= y->pmu)
                        i++;
                else
                        j++;
        }
        return false;
}
