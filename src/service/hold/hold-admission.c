/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-admission.h"

#include "core/promise.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"

/* ---- slots that granted holds of all counters cover ---- */

void hold_cover(Hold *h, bool granted) {
        Service *s = h->service;

        if (h->ledger.counters > 0)
                return;
        for (size_t i = 0; i < h->request.what.scope.n_parts; i++) {
                const ScopePart *part = &h->request.what.scope.parts[i];
                Cover *cover = s->cover[part->pmu];

                CPU_FOREACH (cpu, &part->cpus) {
                        cover[cpu].n_full += granted ? 1 : -1u;
                        if (h->confirmed)
                                cover[cpu].n_confirmed += granted ? 1 : -1u;
                }
        }
}

static void hold_settle(Hold *h, bool confirmed) {
        if (confirmed || h->request.best_effort)
                hold_grant(h, confirmed);
        else
                hold_end(h, HOLD_OBSTRUCTED);
}

static void hold_scanned(void *userdata, int r, const User *users, size_t n_users, bool complete) {
        Hold *h = userdata;
        Service *s = h->service;

        h->scan = NULL;
        hold_add_users(h, users, r == 0 ? n_users : 0);
        hold_settle(h, false);
        holds_advance(s);
}

/* The probe found somebody: the processes that have perf events open are the candidates. */
static void hold_find_candidates(Hold *h) {
        if (reader_scan(h->service->helper, hold_scanned, h, &h->scan) < 0)
                hold_scanned(h, -EIO, NULL, 0, false);
}

/* ---- the probe ---- */

void hold_admission_stop(Hold *h) {
        for (size_t i = 0; i < h->n_probes; i++)
                probe_free(h->probes[i]);
        free(h->probes);
        h->probes = NULL;
        h->n_probes = 0;
        h->measuring = false;
        h->scan = reader_job_cancel(h->scan);
}

static Shape hold_wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        const Hold *h = userdata;

        return promise_of(&h->service->ledger, &h->ledger, pmu->index, cpu);
}

/* The online CPUs of a part that nobody has measured yet. What was measured before is taken over.
 */
static int part_to_measure(Hold *h, const ScopePart *part, CpuSet *ret) {
        const Service *s = h->service;
        const Cover *cover = s->cover[part->pmu];
        int r = cpuset_intersect(ret, &part->cpus, &s->pmus.online);

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
        const Pmu *pmu = &h->service->pmus.pmus[part->pmu];
        int r;

        if (pmu->measured && pmu->counters == 0)
                return 0; /* never scarce */
        r = part_to_measure(h, part, &cpus);
        if (r < 0 || cpuset_is_empty(&cpus))
                return r;
        if (!look_can(pmu)) {
                h->measured_free = false; /* nobody can tell */
                return 0;
        }
        r = probe_new(hold_wants, h, &h->probes[h->n_probes]);
        if (r < 0)
                return r;
        r = probe_add(h->probes[h->n_probes++], pmu, &cpus);
        if (r == 0)
                r = probe_look(h->probes[h->n_probes - 1], now_usec(CLOCK_MONOTONIC));
        return MIN(r, 0);
}

static int hold_probe_begin(Hold *h) {
        const Scope *scope = &h->request.what.scope;

        /* what has been closed is free only when nobody else keeps it open */
        store_settle(h->service->store);
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

static bool hold_probe_look(Hold *h) {
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
                        ledger_set_extra(&h->service->ledger, &h->ledger, part,
                                         h->ledger.extra[part] + more);
}

/* What the probes found too little, per PMU: in a partial hold more monitors must go. */
static bool hold_ask_for_more(Hold *h) {
        Service *s = h->service;
        size_t n_yielded = 0;

        if (h->ledger.counters == 0)
                return false;
        for (size_t i = 0; i < h->n_probes; i++) {
                const Probe *p = h->probes[i];
                unsigned missing = 0;

                for (size_t j = 0; j < p->n_looks; j++)
                        missing = MAX(missing,
                                      shape_without(p->looks[j].wanted, p->looks[j].free).general);
                if (missing > 0)
                        hold_add_extra(h, p->looks[0].pmu, missing);
        }
        if (yielders_apply(&s->roster, h->id, h->yield_until_usec, &n_yielded) < 0)
                return false;
        return n_yielded > 0;
}

static bool hold_probes_agree(const Hold *h) {
        if (!h->measured_free)
                return false;
        for (size_t i = 0; i < h->n_probes; i++)
                if (!probe_confirms(h->probes[i]))
                        return false;
        return true;
}

static void hold_measured(Hold *h) {
        if (hold_probes_agree(h)) {
                if (h->request.exclusive)
                        hold_add_foreign_counters(h);
                hold_settle(h, h->n_obstacles == 0);
                return;
        }
        if (hold_ask_for_more(h)) {
                hold_admission_stop(h);
                hold_step_at(h, h->yield_until_usec);
                return;
        }
        hold_admission_stop(h);
        hold_find_candidates(h);
}

/* ---- CPUs that come online in a hold ---- */

static void hold_set_confirmed(Hold *h, bool confirmed) {
        hold_cover(h, false);
        h->confirmed = confirmed;
        hold_cover(h, true);
        hold_save(h);
        hold_signal_confirmed(h);
}

void holds_cpu_joined(Service *s, unsigned cpu) {
        Hold *h;

        TAILQ_FOREACH (h, &s->granted, list)
                for (size_t i = 0; i < h->request.what.scope.n_parts; i++) {
                        const ScopePart *part = &h->request.what.scope.parts[i];

                        /* who was never confirmed does not become so by one CPU more */
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

void hold_admission_joined(Hold *h) {
        const Service *s = h->service;
        bool all_free = true;

        CPU_FOREACH (cpu, &h->joined)
                for (size_t i = 0; i < h->request.what.scope.n_parts; i++) {
                        const ScopePart *part = &h->request.what.scope.parts[i];
                        const Pmu *pmu = &s->pmus.pmus[part->pmu];
                        Shape promised = hold_wants(h, pmu, (unsigned) cpu), found;

                        if (cpuset_has(&part->cpus, (unsigned) cpu) && !shape_is_empty(promised) &&
                            cpuset_has(&s->pmus.online, (unsigned) cpu) &&
                            (probe_free_now(pmu, (unsigned) cpu, promised, &found) != 0 ||
                             !shape_contains(found, promised)))
                                all_free = false;
                }
        cpuset_done(&h->joined);
        if (all_free)
                hold_set_confirmed(h, true);
}

/* ---- one step further ---- */

/* Whether an earlier hold of the same slots is not granted yet. */
static bool hold_must_stand_back(const Hold *h) {
        Hold *earlier;

        TAILQ_FOREACH (earlier, &h->service->pending, list) {
                if (earlier == h)
                        return false;
                if (scope_overlaps(&earlier->request.what.scope, &h->request.what.scope))
                        return true;
        }
        return false;
}

void hold_look_ahead(Hold *h) {
        if (hold_must_stand_back(h) ||
            yielders_asked(&h->service->roster, &h->request.what.scope, NULL, NULL) > 0)
                return;
        if (hold_probe_begin(h) < 0)
                hold_admission_stop(h); /* tried again when it is its turn */
        else if (hold_probe_look(h) && hold_probes_agree(h))
                h->free_usec = now_usec(CLOCK_MONOTONIC);
}

/* Takes the hold as far as it can go now; true when that changed the list of pending holds, or who
 * yields. */
static bool hold_advance(Hold *h) {
        Service *s = h->service;

        if (h->scan || hold_must_stand_back(h))
                return false;
        if (!h->measuring) {
                if (yielders_asked(&s->roster, &h->request.what.scope, NULL, NULL) > 0) {
                        if (now_usec(CLOCK_MONOTONIC) < h->yield_until_usec)
                                return false;
                        hold_add_asked(h);
                        hold_settle(h, false);
                        return true;
                }
                if (hold_probe_begin(h) < 0) {
                        (void) hold_add_obstacle(h, getpid(),
                                                 "perfallocd is out of memory or descriptors");
                        hold_settle(h, false);
                        return true;
                }
        }
        if (!hold_probe_look(h))
                return false;
        hold_measured(h);
        return true;
}

void holds_advance(Service *s) {
        Hold *h;

        /* A hold that is settled may let others go on; what it calls comes back here. */
        s->advance_again = true;
        if (s->advancing)
                return;
        s->advancing = true;
        while (s->advance_again) {
                s->advance_again = false;
                TAILQ_FOREACH (h, &s->pending, list)
                        if (hold_advance(h)) {
                                s->advance_again = true;
                                break;
                        }
        }
        s->advancing = false;
}

/* Who but uid has an exclusive hold on one of these slots, granted or about to be. */
static Hold *exclusive_holder(Service *s, uid_t uid, unsigned pmu, const CpuSet *cpus) {
        const Scope scope = { .n_parts = 1, .parts = &(ScopePart){ .pmu = pmu, .cpus = *cpus } };
        LedgerHold *l;

        if (!ledger_demands(&s->ledger, &scope, SLOT_EXCLUSIVE))
                return NULL;
        TAILQ_FOREACH (l, &s->ledger.holds, list)
                if (l->state == LEDGER_ACTIVE && l->exclusive &&
                    container_of(l, Hold, ledger)->uid != uid && scope_overlaps(&l->scope, &scope))
                        return container_of(l, Hold, ledger);
        return NULL;
}

int holds_admit_opening(Service *s, uid_t uid, const Event *events, size_t n_events,
                        const CpuSet *cpus, Refusal *why) {
        for (size_t i = 0; i < n_events; i++) {
                const Pmu *pmu = events[i].pmu;
                const Hold *h = exclusive_holder(s, uid, pmu->index, cpus ?: &pmu->cpus);

                if (h)
                        return refuse(
                                why, REFUSAL_BUSY,
                                "'%s': pid %d of uid %u has an exclusive hold on PMU %s; wait "
                                "until it ends",
                                events[i].name, (int) h->pid, (unsigned) h->uid, pmu->name);
        }
        return 0;
}

static bool holds_cover_cell(const Service *s, uid_t uid, const Pmu *pmu, unsigned cpu) {
        Hold *h;

        TAILQ_FOREACH (h, &s->granted, list)
                if (h->uid == uid && scope_has(&h->request.what.scope, pmu->index, cpu))
                        return true;
        return false;
}

bool holds_cover(Service *s, uid_t uid, const Pmu *pmu, int cpu) {
        if (cpu >= 0)
                return holds_cover_cell(s, uid, pmu, (unsigned) cpu);
        CPU_FOREACH (c, &s->pmus.online)
                if (cpuset_has(&pmu->cpus, (unsigned) c) &&
                    !holds_cover_cell(s, uid, pmu, (unsigned) c))
                        return false;
        return true;
}
