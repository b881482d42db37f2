/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-probe.h"

#include "core/clock.h"
#include "perf/pmu/event-order.h"
#include "service/hold/hold-claims.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"

/* ---- what is promised ---- */

/* What has to be free on a CPU: what this hold and all others were promised, but for what is open
 * already. */
static Shape hold_wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        HoldClaims claims;

        hold_claims_read(userdata, pmu, cpu, &claims);
        return promise_must_be_free(&claims.promise);
}

/* ---- the probe ---- */

static int hold_probe_new(Hold *h) {
        int r;

        h->usable = calloc(MAX(h->request.what.scope.n_parts, 1u), sizeof(Shape));
        r = h->usable ? probe_new(hold_wants, h, &h->probe) : -ENOMEM;
        if (r >= 0)
                LIST_INSERT_HEAD(&h->holds->measured, h, measured);
        return r;
}

/* Once for all CPUs: it reads a file. */
static void hold_set_usable(Hold *h) {
        const Scope *scope = &h->request.what.scope;

        for (size_t i = 0; i < scope->n_parts; i++)
                h->usable[i] = hold_usable(&h->context->pmus.pmus[scope->parts[i].pmu]);
}

/* cpus is NULL for all of the part's. */
static int hold_probe_add(Hold *h, const ScopePart *part, const CpuSet *cpus) {
        _cleanup_(cpuset_done) CpuSet some = CPUSET_NULL;
        int r = cpus ? cpuset_intersect(&some, &part->cpus, cpus) : 0;

        return r < 0 ? r
                     : probe_add(h->probe, &h->context->pmus.pmus[part->pmu],
                                 cpus ? &some : &part->cpus);
}

int hold_probe_begin(Hold *h, const CpuSet *cpus) {
        const Scope *scope = &h->request.what.scope;
        int r = hold_probe_new(h);

        /* what was closed is free only when its last copy is closed */
        store_settle(h->context->store);
        for (size_t i = 0; i < scope->n_parts && r >= 0; i++)
                r = hold_probe_add(h, &scope->parts[i], cpus);
        return r;
}

bool hold_probes_beside(const Hold *h) {
        const Hold *other;

        LIST_FOREACH (other, &h->holds->measured, measured)
                if (other != h &&
                    scope_overlaps(&other->request.what.scope, &h->request.what.scope))
                        return true;
        return false;
}

int hold_probe_look(Hold *h) {
        int r;

        hold_set_usable(h);
        r = probe_look(h->probe, now_usec(CLOCK_MONOTONIC));
        hold_step_at(h, r == PROBE_AGAIN ? h->probe->next_usec : UINT64_MAX);
        return r < 0 ? r : r != PROBE_AGAIN;
}

bool hold_probe_confirms(const Hold *h) {
        return probe_confirms(h->probe);
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

void hold_add_standing(Hold *h, bool holders) {
        const Holds *holds = h->holds;

        for (size_t i = 0; i < h->probe->n_looks; i++) {
                const Look *l = &h->probe->looks[i];

                if (look_lacks(l))
                        holds->hooks.add_standing(holds->userdata, h, holders, l->pmu, l->cpu,
                                                  shape_without(l->wanted, l->free));
        }
}

void hold_set_lack(Hold *h) {
        for (size_t i = 0; i < h->probe->n_looks; i++) {
                const Look *l = &h->probe->looks[i];

                if (!look_lacks(l))
                        continue;
                h->lack = (HoldLack){ .pmu = l->pmu,
                                      .cpu = l->cpu,
                                      .n_wanted = shape_size(l->wanted),
                                      .n_free = shape_size(shape_common(l->wanted, l->free)) };
                return;
        }
}

void hold_add_missing(Hold *h) {
        for (size_t i = 0; h->probe && i < h->probe->n_looks; i++) {
                const Look *l = &h->probe->looks[i];

                if (look_lacks(l))
                        ledger_add_missing(&h->context->ledger, &h->ledger, l->pmu->index, l->cpu,
                                           shape_without(l->wanted, l->free).general);
        }
}

bool hold_ask_for_more(Hold *h) {
        size_t n_yielded = 0;

        if (h->ledger.counters == 0)
                return false;
        hold_add_missing(h);
        hold_set_deadline(h); /* for those that are asked only now */
        if (yielders_apply(&h->context->yielders, h->object.id, h->yield_until_usec, &n_yielded) <
            0)
                return false;
        return n_yielded > 0;
}

/* ---- what holders have open ---- */

/* What is taken, in general counters and those fixed ones that are missing, and not by what the
 * service knows of. */
static Shape look_unknown(const Look *l, const HoldClaims *c) {
        Shape known = c->known.takes;

        known.general += l->free.general;
        return (Shape){ .general = shape_without(c->promise.whole, known).general,
                        .fixed = l->wanted.fixed & ~l->free.fixed & ~known.fixed };
}

static int hold_set_hidden(Hold *h, const Look *l, const PromiseHidden *hidden) {
        HoldExplained *explained;
        size_t i = 0;

        while (i < h->n_explained &&
               (h->explained[i].pmu != l->pmu || h->explained[i].cpu != l->cpu))
                i++;
        if (i == h->n_explained) {
                explained = reallocarray(h->explained, i + 1, sizeof(HoldExplained));
                if (!explained)
                        return -ENOMEM;
                h->explained = explained;
                h->n_explained++;
        }
        h->explained[i] = (HoldExplained){ .pmu = l->pmu, .cpu = l->cpu, .hidden = *hidden };
        return 0;
}

static void look_explain(Hold *h, Look *l, const User *users, size_t n_users) {
        HoldClaims claims;

        hold_claims_read(h, l->pmu, l->cpu, &claims);
        hold_claims_add_users(&claims, users, n_users);
        if (promise_explain(&claims.promise, look_unknown(l, &claims), claims.others) &&
            hold_set_hidden(h, l, &claims.promise.hidden) == 0)
                l->wanted = promise_must_be_free(&claims.promise);
}

bool hold_probe_explain(Hold *h, const User *users, size_t n_users) {
        for (size_t i = 0; i < h->probe->n_looks; i++)
                if (look_lacks(&h->probe->looks[i]))
                        look_explain(h, &h->probe->looks[i], users, n_users);
        return !hold_probe_lacks(h);
}

/* ---- the promise ---- */

static Shape look_promise(const Hold *h, const Look *l) {
        HoldClaims claims;

        hold_claims_read(h, l->pmu, l->cpu, &claims);
        return promise_of(&claims.promise, l->free);
}

/* On all CPUs of the part that were online. */
static Shape part_promise(const Hold *h, const ScopePart *part) {
        Shape promise = { UINT32_MAX, UINT32_MAX };
        bool any = false;

        for (size_t i = 0; i < h->probe->n_looks; i++) {
                const Look *l = &h->probe->looks[i];

                if (l->pmu->index != part->pmu || l->result == LOOK_OFFLINE)
                        continue;
                promise = shape_common(promise, look_promise(h, l));
                any = true;
        }
        if (any)
                return promise;
        /* nobody is short of these */
        return h->context->ledger.slots.pmus[part->pmu].capacity == SLOT_UNLIMITED
                       ? (Shape){ .general = h->ledger.counters }
                       : SHAPE_NULL;
}

void hold_set_promised(Hold *h) {
        const Scope *scope = &h->request.what.scope;

        h->alone = h->confirmed && h->probe && probe_is_alone(h->probe);
        h->since = h->confirmed ? event_order_now() : UINT64_MAX;
        h->promised = h->confirmed ? calloc(MAX(scope->n_parts, 1u), sizeof(Shape)) : NULL;
        for (size_t i = 0; h->promised && i < scope->n_parts; i++)
                h->promised[i] = part_promise(h, &scope->parts[i]);
}
