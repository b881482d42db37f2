/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-probe.h"

#include "core/clock.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"

/* ---- slots that granted holds of all counters cover ---- */

void hold_cover(Hold *h, bool granted) {
        Holds *holds = h->holds;

        if (h->ledger.counters > 0)
                return;
        for (size_t i = 0; i < h->request.what.scope.n_parts; i++) {
                const ScopePart *part = &h->request.what.scope.parts[i];
                Cover *cover = holds->cover[part->pmu];

                CPU_FOREACH (cpu, &part->cpus) {
                        cover[cpu].n_full += granted ? 1 : -1u;
                        if (h->confirmed)
                                cover[cpu].n_confirmed += granted ? 1 : -1u;
                }
        }
}

/* How many counters of a CPU the hold was promised: N, or all that no other hold was promised. */
static unsigned hold_promised(const Hold *h, const Pmu *pmu, unsigned cpu) {
        const SlotChunk *chunk =
                slot_table_chunk(&h->context->ledger.slots, pmu->index, cpu / CHUNK_SLOTS);
        uint64_t others = chunk ? chunk->slots[cpu % CHUNK_SLOTS].sum : 0;

        if (h->ledger.counters > 0)
                return h->ledger.counters;
        return pmu->counters > others ? pmu->counters - (unsigned) others : 0;
}

static unsigned hold_wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        return hold_promised(userdata, pmu, cpu);
}

/* The online CPUs of a part that are not measured yet. Earlier measurements of other holds
 * count. */
static int part_to_measure(Hold *h, const ScopePart *part, CpuSet *ret) {
        const Holds *holds = h->holds;
        const Cover *cover = holds->cover[part->pmu];
        int r = cpuset_intersect(ret, &part->cpus, &holds->context->pmus.online);

        if (r < 0 || h->ledger.counters > 0)
                return r;
        CPU_FOREACH (cpu, &part->cpus) {
                if (cover[cpu].n_full == 0)
                        continue;
                if (cover[cpu].n_confirmed == 0)
                        h->measured_free = false;
                cpuset_remove(ret, (unsigned) cpu);
        }
        return 0;
}

static int hold_probe_part(Hold *h, const ScopePart *part) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        const Pmu *pmu = &h->context->pmus.pmus[part->pmu];
        int r;

        if (pmu->measured && pmu->counters == 0)
                return 0; /* no limit */
        r = part_to_measure(h, part, &cpus);
        if (r < 0 || cpuset_is_empty(&cpus))
                return r;
        if (!pmu->measured || !probe_can(pmu)) {
                h->measured_free = false; /* this cannot be measured */
                return 0;
        }
        r = probe_begin_each(pmu, &cpus, hold_wants, h, now_usec(CLOCK_MONOTONIC),
                             &h->probes[h->n_probes]);
        if (r == 0)
                h->n_probes++;
        return r;
}

int hold_probe_begin(Hold *h) {
        const Scope *scope = &h->request.what.scope;

        /* closed counters are free only after the last copy of their descriptor is closed */
        store_settle(h->context->store);
        h->measuring = true;
        h->measured_free = true;
        h->probes = calloc(MAX(scope->n_parts, 1u), sizeof(Probe *));
        if (!h->probes)
                return -ENOMEM;
        for (size_t i = 0; i < scope->n_parts; i++) {
                int r = hold_probe_part(h, &scope->parts[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

bool hold_probe_look(Hold *h) {
        uint64_t now = now_usec(CLOCK_MONOTONIC), next = UINT64_MAX;

        for (size_t i = 0; i < h->n_probes; i++)
                if (probe_look(h->probes[i], now) == PROBE_AGAIN)
                        next = MIN(next, h->probes[i]->next_usec);
        hold_step_at(h, next);
        return next == UINT64_MAX;
}

static void hold_add_extra(Hold *h, const Pmu *pmu, unsigned more) {
        for (size_t part = 0; part < h->request.what.scope.n_parts; part++)
                if (h->request.what.scope.parts[part].pmu == pmu->index)
                        ledger_set_extra(&h->context->ledger, &h->ledger, part,
                                         h->ledger.extra[part] + more);
}

/* Per PMU, asks for as many counters more as the probes found too few. */
bool hold_ask_for_more(Hold *h) {
        Holds *holds = h->holds;
        size_t n_yielded = 0;

        if (h->ledger.counters == 0)
                return false;
        for (size_t i = 0; i < h->n_probes; i++) {
                const Probe *p = h->probes[i];
                unsigned missing = 0;

                for (size_t j = 0; j < p->n_cpus; j++)
                        if (p->cpus[j].free < p->cpus[j].wanted)
                                missing = MAX(missing, p->cpus[j].wanted - p->cpus[j].free);
                if (missing > 0)
                        hold_add_extra(h, p->pmu, missing);
        }
        if (yielders_apply(&holds->context->yielders, h->object.id, h->yield_until_usec,
                           &n_yielded) < 0)
                return false;
        return n_yielded > 0;
}

bool hold_probes_agree(const Hold *h) {
        if (!h->measured_free)
                return false;
        for (size_t i = 0; i < h->n_probes; i++)
                for (size_t j = 0; j < h->probes[i]->n_cpus; j++)
                        if (h->probes[i]->cpus[j].free < h->probes[i]->cpus[j].wanted)
                                return false;
        return true;
}

/* ---- CPUs that come online in a hold ---- */

static void hold_set_confirmed(Hold *h, bool confirmed) {
        hold_cover(h, false);
        h->confirmed = confirmed;
        hold_cover(h, true);
        hold_save(h);
        hold_signal_confirmed(h);
}

void holds_cpu_joined(Holds *holds, unsigned cpu) {
        Hold *h;

        TAILQ_FOREACH (h, &holds->granted, list)
                for (size_t i = 0; i < h->request.what.scope.n_parts; i++) {
                        const ScopePart *part = &h->request.what.scope.parts[i];

                        /* one more CPU does not confirm a hold that was not confirmed */
                        if (!cpuset_has(&part->cpus, cpu) ||
                            !(h->confirmed || !cpuset_is_empty(&h->joined)))
                                continue;
                        if (h->confirmed)
                                hold_set_confirmed(h, false);
                        if (cpuset_add(&h->joined, cpu) == 0)
                                hold_step_at(h, now_usec(CLOCK_MONOTONIC));
                        break;
                }
}

void hold_probe_joined(Hold *h) {
        const Holds *holds = h->holds;
        bool all_free = true;

        CPU_FOREACH (cpu, &h->joined)
                for (size_t i = 0; i < h->request.what.scope.n_parts; i++) {
                        const ScopePart *part = &h->request.what.scope.parts[i];
                        const Pmu *pmu = &holds->context->pmus.pmus[part->pmu];
                        unsigned promised = hold_promised(h, pmu, (unsigned) cpu);

                        if (cpuset_has(&part->cpus, (unsigned) cpu) && promised > 0 &&
                            cpuset_has(&holds->context->pmus.online, (unsigned) cpu) &&
                            probe_free_now(pmu, (unsigned) cpu, promised) < (int) promised)
                                all_free = false;
                }
        cpuset_done(&h->joined);
        if (all_free)
                hold_set_confirmed(h, true);
}
