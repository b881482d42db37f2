/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe.h"

int probe_new(ProbeWants wants, void *userdata, Probe **ret) {
        Probe *p = calloc(1, sizeof(Probe));

        if (!p)
                return -ENOMEM;
        *p = (Probe){ .wants = wants, .userdata = userdata, .step_usec = PROBE_STEP_USEC };
        *ret = p;
        return 0;
}

Probe *probe_free(Probe *p) {
        if (!p)
                return NULL;
        free(p->cpus);
        free(p);
        return NULL;
}

int probe_add(Probe *p, const Pmu *pmu, const CpuSet *cpus) {
        ProbeCpu *all;

        if (!look_can(pmu)) {
                p->unknown |= !pmu->measured;
                return 0;
        }
        all = reallocarray(p->cpus, MAX(p->n_cpus + cpuset_count(cpus), 1u), sizeof(*all));
        if (!all)
                return -ENOMEM;
        p->cpus = all;
        CPU_FOREACH (cpu, cpus)
                p->cpus[p->n_cpus++] = (ProbeCpu){ .pmu = pmu, .cpu = (unsigned) cpu };
        return 0;
}

static bool cpu_is_settled(const ProbeCpu *c) {
        return c->look == LOOK_FREE || c->look == LOOK_OFFLINE;
}

/* ---- one round of looks ---- */

typedef enum Round {
        ROUND_WAITING, /* those that are not settled */
        ROUND_ALL,
        ROUND_COUNT, /* those that are not settled: how much is free there */
} Round;

static int cpu_look(const Probe *p, ProbeCpu *c, Round round) {
        int r;

        c->wanted = p->wants(p->userdata, c->pmu, c->cpu);
        if (round == ROUND_COUNT) {
                r = look_count(c->pmu, c->cpu, c->wanted, &c->free, &c->seen);
                if (r == 0)
                        r = shape_contains(c->free, c->wanted) ? LOOK_FREE : LOOK_TAKEN;
        } else {
                r = look_at(c->pmu, c->cpu, c->wanted, &c->seen);
                c->free = r == LOOK_FREE ? c->wanted : SHAPE_NULL;
        }
        if (r >= 0)
                c->look = (Look) r;
        return MIN(r, 0);
}

static int probe_round(Probe *p, Round round) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < p->n_cpus; i++)
                if (round == ROUND_ALL || !cpu_is_settled(&p->cpus[i]))
                        r = cpu_look(p, &p->cpus[i], round);
        return r;
}

/* ---- rounds ---- */

static bool probe_is_settled(const Probe *p) {
        for (size_t i = 0; i < p->n_cpus; i++)
                if (!cpu_is_settled(&p->cpus[i]))
                        return false;
        return true;
}

/* Where nobody could look it is not over. Breakpoints are not waited for: whoever has a slot has it
 * until they close it. */
static bool probe_is_over(const Probe *p, uint64_t now_usec) {
        uint64_t watched = now_usec - p->begun_usec;

        for (size_t i = 0; i < p->n_cpus; i++)
                if (p->cpus[i].look == LOOK_TAKEN)
                        return p->cpus[i].pmu->kind == PMU_BREAKPOINT ||
                               watched >= PROBE_WATCH_USEC;
        return watched >= PROBE_BUSY_USEC;
}

static int probe_round_all(Probe *p) {
        int r = probe_round(p, ROUND_ALL);

        p->confirmed = r == 0 && probe_is_settled(p);
        return r;
}

/* The first round is the last one as well, when all is free. */
static int probe_rounds(Probe *p, bool first, uint64_t now_usec) {
        int r = first ? probe_round_all(p) : probe_round(p, ROUND_WAITING);

        if (r == 0 && !first && probe_is_settled(p))
                r = probe_round_all(p);
        if (r == 0 && !p->confirmed && probe_is_over(p, now_usec)) {
                r = probe_round(p, ROUND_COUNT);
                p->done = r == 0;
        }
        p->done |= p->confirmed;
        return r;
}

int probe_look(Probe *p, uint64_t now_usec) {
        bool first = p->begun_usec == 0;
        int r;

        if (p->done)
                return PROBE_DONE;
        if (now_usec < p->next_usec)
                return PROBE_AGAIN;
        if (first)
                p->begun_usec = MAX(now_usec, UINT64_C(1));
        r = probe_rounds(p, first, now_usec);
        if (r < 0 && (first || probe_is_over(p, now_usec)))
                return r;
        if (p->done)
                return PROBE_DONE;
        p->next_usec = now_usec + p->step_usec;
        if (now_usec < p->begun_usec + PROBE_WATCH_USEC)
                p->next_usec = MIN(p->next_usec, p->begun_usec + PROBE_WATCH_USEC);
        p->step_usec = MIN(p->step_usec * 2, PROBE_WATCH_USEC);
        return PROBE_AGAIN;
}

/* ---- what it says ---- */

bool probe_confirms(const Probe *p) {
        return p->confirmed && !p->unknown;
}

uint64_t probe_seen_usec(const Probe *p) {
        uint64_t oldest = UINT64_MAX;

        for (size_t i = 0; i < p->n_cpus; i++)
                if (p->cpus[i].look == LOOK_FREE)
                        oldest = MIN(oldest, p->cpus[i].seen.usec);
        return oldest == UINT64_MAX ? 0 : oldest;
}

bool probe_is_alone(const Probe *p) {
        for (size_t i = 0; i < p->n_cpus; i++)
                if (p->cpus[i].seen.alone && p->cpus[i].look != LOOK_OFFLINE)
                        return true;
        return false;
}

int probe_free_now(const Pmu *pmu, unsigned cpu, Shape wanted, Shape *ret) {
        LookSeen seen;

        return look_can(pmu) ? look_count(pmu, cpu, wanted, ret, &seen) : -EOPNOTSUPP;
}
