/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-probe.h"

#include "core/clock.h"
#include "core/promise.h"
#include "perf/pmu/kernel-share.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"

/* ---- what is promised ---- */

/* What the PMU has without what the kernel keeps of it now. */
static Shape pmu_usable(const Pmu *pmu) {
        return shape_without(pmu_whole(pmu), kernel_share(pmu, KERNEL_SHARE_PATH));
}

static const Look *probe_find(const Probe *p, const Pmu *pmu, unsigned cpu) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].pmu == pmu && p->looks[i].cpu == cpu)
                        return &p->looks[i];
        return NULL;
}

/* What has to be free on a CPU: what this hold and all others were promised. */
static Shape hold_wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        const Hold *h = userdata;
        const Look *found = h->accepted ? probe_find(h->accepted, pmu, cpu) : NULL;

        return found ? found->free
                     : promise_must_be_free(&h->context->ledger, pmu->index, cpu, pmu_usable(pmu),
                                            SHAPE_NULL);
}

/* ---- the probe ---- */

int hold_probe_begin(Hold *h) {
        const Scope *scope = &h->request.what.scope;
        int r = probe_new(hold_wants, h, &h->probe);

        /* what was closed is free only when its last copy is closed */
        store_settle(h->context->store);
        for (size_t i = 0; i < scope->n_parts && r >= 0; i++)
                r = probe_add(h->probe, &h->context->pmus.pmus[scope->parts[i].pmu],
                              &scope->parts[i].cpus);
        return r;
}

bool hold_probe_look(Hold *h) {
        bool again = probe_look(h->probe, now_usec(CLOCK_MONOTONIC)) == PROBE_AGAIN;

        hold_step_at(h, again ? h->probe->next_usec : UINT64_MAX);
        return !again;
}

bool hold_probe_confirms(const Hold *h) {
        return probe_confirms(h->probe);
}

bool hold_probe_is_unknown(const Hold *h) {
        return h->probe->unknown;
}

static bool look_lacks(const Look *l) {
        return l->result != LOOK_OFFLINE && !shape_contains(l->free, l->wanted);
}

bool hold_probe_lacks(const Hold *h) {
        for (size_t i = 0; i < h->probe->n_looks; i++)
                if (look_lacks(&h->probe->looks[i]))
                        return true;
        return false;
}

static void hold_add_extra(Hold *h, const Pmu *pmu, unsigned more) {
        for (size_t part = 0; part < h->request.what.scope.n_parts; part++)
                if (h->request.what.scope.parts[part].pmu == pmu->index)
                        ledger_set_extra(&h->context->ledger, &h->ledger, part,
                                         h->ledger.extra[part] + more);
}

/* How many general counters the worst CPU of the part lacks. */
static unsigned part_missing(const Hold *h, const ScopePart *part) {
        unsigned missing = 0;

        for (size_t i = 0; i < h->probe->n_looks; i++) {
                const Look *l = &h->probe->looks[i];

                if (l->pmu->index == part->pmu && look_lacks(l))
                        missing = MAX(missing, shape_without(l->wanted, l->free).general);
        }
        return missing;
}

bool hold_ask_for_more(Hold *h) {
        const Scope *scope = &h->request.what.scope;
        size_t n_yielded = 0;

        if (h->ledger.counters == 0)
                return false;
        for (size_t i = 0; i < scope->n_parts; i++) {
                unsigned missing = part_missing(h, &scope->parts[i]);

                if (missing > 0)
                        hold_add_extra(h, &h->context->pmus.pmus[scope->parts[i].pmu], missing);
        }
        hold_set_deadline(h); /* for those that are asked only now */
        if (yielders_apply(&h->context->yielders, h->object.id, h->yield_until_usec, &n_yielded) <
            0)
                return false;
        return n_yielded > 0;
}

bool hold_probe_accept(Hold *h) {
        for (size_t i = 0; i < h->probe->n_looks; i++)
                if (h->probe->looks[i].result != LOOK_OFFLINE &&
                    h->probe->looks[i].free.general < h->ledger.counters)
                        return false;
        h->accepted = TAKE_PTR(h->probe);
        return true;
}

/* ---- the promise ---- */

/* On all CPUs of the part that were online: what was found free, without what others are promised.
 */
static Shape part_promise(const Hold *h, const ScopePart *part) {
        Shape promise = { UINT32_MAX, UINT32_MAX };
        bool any = false;

        for (size_t i = 0; i < h->probe->n_looks; i++) {
                const Look *l = &h->probe->looks[i];

                if (l->pmu->index != part->pmu || l->result == LOOK_OFFLINE)
                        continue;
                promise = shape_common(promise, promise_of(&h->context->ledger, &h->ledger,
                                                           part->pmu, l->cpu, l->free));
                any = true;
        }
        return any ? promise : SHAPE_NULL;
}

void hold_set_promised(Hold *h) {
        const Scope *scope = &h->request.what.scope;

        h->promised = h->confirmed ? calloc(MAX(scope->n_parts, 1u), sizeof(Shape)) : NULL;
        for (size_t i = 0; h->promised && i < scope->n_parts; i++)
                h->promised[i] = part_promise(h, &scope->parts[i]);
}

/* ---- CPUs that come online in a hold ---- */

static void hold_set_confirmed(Hold *h, bool confirmed) {
        h->confirmed = confirmed;
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
                        if (cpuset_add(&h->joined, cpu) == 0) {
                                hold_stop_measuring(h); /* it begins anew, with this one */
                                hold_step_at(h, now_usec(CLOCK_MONOTONIC));
                        }
                        break;
                }
}

static int hold_probe_begin_joined(Hold *h) {
        const Scope *scope = &h->request.what.scope;
        int r = probe_new(hold_wants, h, &h->probe);

        for (size_t i = 0; i < scope->n_parts && r >= 0; i++) {
                _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

                r = cpuset_intersect(&cpus, &scope->parts[i].cpus, &h->joined);
                if (r >= 0)
                        r = probe_add(h->probe, &h->context->pmus.pmus[scope->parts[i].pmu], &cpus);
        }
        return r;
}

void hold_probe_joined(Hold *h) {
        bool confirmed;

        if (cpuset_is_empty(&h->joined) || (!h->probe && hold_probe_begin_joined(h) < 0)) {
                hold_stop_measuring(h);
                return;
        }
        if (!hold_probe_look(h))
                return;
        confirmed = hold_probe_confirms(h);
        hold_stop_measuring(h);
        cpuset_done(&h->joined);
        if (confirmed)
                hold_set_confirmed(h, true);
}
