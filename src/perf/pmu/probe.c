/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe.h"

#include "perf/pmu/looks.h"

#define READY_MAX 64u /* looks, because of their descriptors */

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
        free(p->looks);
        free(p->due);
        free(p);
        return NULL;
}

int probe_add(Probe *p, const Pmu *pmu, const CpuSet *cpus) {
        size_t n = MAX(p->n_looks + cpuset_count(cpus), 1u);
        Look *looks, **due;

        if (!look_can(pmu)) {
                p->unknown |= !pmu->measured;
                return 0;
        }
        looks = reallocarray(p->looks, n, sizeof(*looks));
        if (!looks)
                return -ENOMEM;
        p->looks = looks;
        due = reallocarray(p->due, n, sizeof(Look *));
        if (!due)
                return -ENOMEM;
        p->due = due;
        CPU_FOREACH (cpu, cpus)
                p->looks[p->n_looks++] = (Look){ .pmu = pmu, .cpu = (unsigned) cpu };
        return 0;
}

static bool is_settled(const Look *l) {
        return l->result == LOOK_FREE || l->result == LOOK_OFFLINE;
}

static bool probe_is_settled(const Probe *p) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (!is_settled(&p->looks[i]))
                        return false;
        return true;
}

static const Look *probe_taken(const Probe *p) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].result == LOOK_TAKEN)
                        return &p->looks[i];
        return NULL;
}

/* ---- rounds of looks ---- */

/* Those that are to be made, in p->due. */
static size_t probe_due(Probe *p, bool all) {
        size_t n = 0;

        for (size_t i = 0; i < p->n_looks; i++) {
                Look *l = &p->looks[i];

                if (!all && is_settled(l))
                        continue;
                l->wanted = p->wants(p->userdata, l->pmu, l->cpu);
                p->due[n++] = l;
        }
        return n;
}

static int probe_round(Probe *p, bool all, int (*f)(Look *l)) {
        return looks_make(p->due, probe_due(p, all), f);
}

typedef struct Seen {
        size_t n;
        uint64_t first, last;
} Seen;

/* What is free. */
static Seen probe_seen(const Probe *p) {
        Seen seen = { .first = UINT64_MAX };

        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].result == LOOK_FREE) {
                        seen.n++;
                        seen.first = MIN(seen.first, p->looks[i].seen_usec);
                        seen.last = MAX(seen.last, p->looks[i].seen_usec);
                }
        return seen;
}

/* Nothing else ran between the looks of a round. */
static bool seen_is_together(Seen seen) {
        return seen.n == 0 || seen.last - seen.first <= PROBE_APART_USEC + seen.n * LOOK_TAKES_USEC;
}

/* Looks take so long on this machine that those of a round are never together. */
static bool probe_is_slow(const Probe *p) {
        uint64_t fastest = UINT64_MAX;
        size_t n = 0;

        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].result == LOOK_FREE && !shape_is_empty(p->looks[i].wanted)) {
                        fastest = MIN(fastest, p->looks[i].took_usec);
                        n++;
                }
        return n > 0 && !seen_is_together((Seen){ n, 0, (n - 1) * fastest });
}

/* As near to one another as they can be. Where descriptors are too few to have so much open at
 * once, it is a round like any other. */
static int probe_round_near(Probe *p) {
        size_t n = probe_due(p, true);
        int r = n <= READY_MAX ? looks_make(p->due, n, look_ready) : 0;

        if (r == 0)
                r = looks_make(p->due, n, look_at);
        (void) looks_make(p->due, n, look_close);
        return r == 0 ? 0 : probe_round(p, true, look_at);
}

/* A round that was not together proves something with the one before: each CPU was free before and
 * after its first look. */
static int probe_round_all(Probe *p) {
        bool settled = true, enough = false;
        Seen before = {};
        int r = 0;

        for (unsigned i = 0; r == 0 && settled && !enough && i < PROBE_ROUNDS; i++) {
                Seen seen;

                r = i == 0 ? probe_round(p, true, look_at) : probe_round_near(p);
                settled = probe_is_settled(p);
                seen = probe_seen(p);
                enough =
                        seen_is_together(seen) || (i > 0 && seen.n == before.n && probe_is_slow(p));
                before = seen;
        }
        p->confirmed = r == 0 && settled;
        return r;
}

/* Breakpoints are not waited for: whoever has a slot has it until they close it. */
static bool probe_is_over(const Probe *p, uint64_t now_usec) {
        const Look *taken = probe_taken(p);

        return taken &&
               (taken->pmu->kind == PMU_BREAKPOINT || now_usec - p->begun_usec >= PROBE_WATCH_USEC);
}

/* Tells what there is. Whoever was in the way may have left since the last look. */
static int probe_conclude(Probe *p) {
        int r = probe_round(p, false, look_count);

        for (unsigned i = 0; i < PROBE_ROUNDS && r == 0 && !p->confirmed && probe_is_settled(p);
             i++)
                r = probe_round_all(p) ?: probe_round(p, false, look_count);
        p->done = r == 0;
        return r;
}

/* The first round is the last one as well, when all is free. */
static int probe_rounds(Probe *p, bool first, uint64_t now_usec) {
        int r = first ? probe_round_all(p) : probe_round(p, false, look_at);

        if (r == 0 && !first && probe_is_settled(p))
                r = probe_round_all(p);
        p->done = p->confirmed;
        return r == 0 && !p->done && probe_is_over(p, now_usec) ? probe_conclude(p) : r;
}

/* ---- when to look again ---- */

static uint64_t probe_step(Probe *p, uint64_t now_usec) {
        uint64_t end = p->begun_usec + PROBE_WATCH_USEC, next = now_usec + p->step_usec;

        p->step_usec = MIN(p->step_usec * 2, PROBE_WATCH_USEC);
        return now_usec < end ? MIN(next, end) : next;
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
        if (r < 0 && (first || now_usec - p->begun_usec >= PROBE_WATCH_USEC))
                return r;
        if (p->done)
                return PROBE_DONE;
        p->next_usec = probe_step(p, now_usec);
        return PROBE_AGAIN;
}

/* ---- what it says ---- */

bool probe_is_offline(const Probe *p) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].result != LOOK_OFFLINE)
                        return false;
        return p->n_looks > 0;
}

bool probe_can_confirm(const Probe *p) {
        return !p->unknown && !probe_is_offline(p);
}

bool probe_confirms(const Probe *p) {
        return p->confirmed && probe_can_confirm(p);
}

uint64_t probe_seen_usec(const Probe *p) {
        Seen seen = probe_seen(p);

        return seen.n == 0 ? 0 : seen.first;
}

bool probe_is_alone(const Probe *p) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].alone && p->looks[i].result != LOOK_OFFLINE)
                        return true;
        return false;
}

int probe_free_now(const Pmu *pmu, unsigned cpu, Shape wanted, Shape *ret) {
        Look l = { .pmu = pmu, .cpu = cpu, .wanted = wanted };
        int r = look_can(pmu) ? look_count(&l) : -EOPNOTSUPP;

        if (r < 0)
                return r;
        *ret = l.free;
        return l.result == LOOK_OFFLINE ? LOOK_OFFLINE : 0;
}
