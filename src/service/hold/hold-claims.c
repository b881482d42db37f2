/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-claims.h"

#include <limits.h>
#include <string.h>

#include "perf/pmu/kernel-share.h"
#include "perf/process/tree.h"

#define ANCESTORS_MAX 64

/* ---- whose it is ---- */

/* Of a hold of root's, those that descend from its maker. */
static bool process_is_of(const Hold *h, uid_t uid, pid_t pid) {
        if (uid != h->object.uid)
                return false;
        if (uid != 0)
                return true;
        for (int i = 0; pid > 1 && i < ANCESTORS_MAX; i++) {
                if (pid == h->pid)
                        return true;
                pid = tree_parent(pid);
        }
        return false;
}

/* A hold that has yet to be confirmed on CPUs that came online keeps its promise on the others. */
static bool hold_claims_beside(const Hold *other, const Hold *h) {
        return other != h && (other->confirmed || !cpuset_is_empty(&other->joined));
}

/* On a CPU that came online in a hold, that is measured again, beside what its holder has open. */
static bool hold_claims_slot(const Hold *other, const Hold *h, const Pmu *pmu, unsigned cpu) {
        if (other == h)
                return h->state == HOLD_GRANTED;
        return hold_claims_beside(other, h) && !cpuset_has(&other->joined, cpu) &&
               scope_has(&other->request.what.scope, pmu->index, cpu);
}

bool hold_is_holders(const Hold *h, uid_t uid, pid_t pid, uint64_t order) {
        const Hold *other;

        TAILQ_FOREACH (other, &h->holds->granted, list)
                if (hold_claims_beside(other, h) && order > other->since &&
                    process_is_of(other, uid, pid) &&
                    scope_overlaps(&other->request.what.scope, &h->request.what.scope))
                        return true;
        return false;
}

bool hold_has_company(const Hold *h) {
        const Hold *other;

        TAILQ_FOREACH (other, &h->holds->granted, list)
                if (hold_claims_beside(other, h) &&
                    scope_overlaps(&other->request.what.scope, &h->request.what.scope))
                        return true;
        return false;
}

/* ---- who was promised what ---- */

static size_t claims_find(const HoldClaims *c, uid_t uid, pid_t pid) {
        size_t i = 0;

        while (i < c->promise.n_holders && !process_is_of(c->firsts[i], uid, pid))
                i++;
        return i;
}

/* Granted holds are in the order of their grants. */
static void claims_add_hold(HoldClaims *c, const Hold *other) {
        Promise *p = &c->promise;
        size_t i = claims_find(c, other->object.uid, other->pid);

        if (i == PROMISE_HOLDERS_MAX) { /* of holds by number there are not as many */
                p->holders[i - 1].number += other->ledger.counters;
                return;
        }
        if (i == p->n_holders) {
                c->firsts[p->n_holders++] = other;
                p->holders[i] = (PromiseHolder){};
        }
        p->holders[i].all |= ledger_hold_is_full(&other->ledger);
        p->holders[i].number += ledger_hold_is_full(&other->ledger) ? 0 : other->ledger.counters;
}

static PromiseHolder *claims_holder(HoldClaims *c, uid_t uid, pid_t pid, uint64_t order) {
        size_t i = claims_find(c, uid, pid);

        return i < c->promise.n_holders && order > c->firsts[i]->since ? &c->promise.holders[i]
                                                                       : NULL;
}

/* ---- what is open ---- */

static void claims_add_others(HoldClaims *c, unsigned n) {
        c->others = c->others > UINT_MAX - n ? UINT_MAX : c->others + n;
}

static void claims_add_counted(void *userdata, const HoldCounted *counted) {
        HoldClaims *c = userdata;
        PromiseHolder *holder =
                counted->monitor ? NULL
                                 : claims_holder(c, counted->uid, counted->pid, counted->order);

        if (counted->surely) {
                counter_use_add_open(&c->known, &counted->use);
                if (holder)
                        counter_use_add_open(&holder->opened, &counted->use);
        } else if (holder)
                holder->perhaps += counted->n_events;
        else
                claims_add_others(c, counted->n_events);
}

void hold_claims_add_users(HoldClaims *c, const User *users, size_t n_users) {
        for (size_t i = 0; i < n_users; i++) {
                const User *u = &users[i];
                PromiseHolder *holder = claims_holder(c, u->uid, u->pid, u->oldest);

                if (holder)
                        holder->perhaps += u->n_descriptors;
                else /* how many there are of those that are only mapped is not known */
                        claims_add_others(c, u->n_descriptors > 0 ? u->n_descriptors : UINT_MAX);
        }
}

/* ---- the slot ---- */

Shape hold_usable(const Pmu *pmu) {
        return shape_without(pmu_whole(pmu), kernel_share(pmu, KERNEL_SHARE_PATH));
}

static const PromiseHidden *hold_hidden(const Hold *h, const Pmu *pmu, unsigned cpu) {
        static const PromiseHidden none = {};

        for (size_t i = 0; i < h->n_explained; i++)
                if (h->explained[i].pmu == pmu && h->explained[i].cpu == cpu)
                        return &h->explained[i].hidden;
        return &none;
}

void hold_claims_read(const Hold *h, const Pmu *pmu, unsigned cpu, HoldClaims *ret) {
        const Hold *other;

        ret->promise.whole = h->usable[scope_find(&h->request.what.scope, pmu->index) -
                                       h->request.what.scope.parts];
        ret->promise.again = h->state == HOLD_GRANTED;
        ret->promise.number = ledger_hold_is_full(&h->ledger) ? 0 : h->ledger.counters;
        ret->promise.hidden = *hold_hidden(h, pmu, cpu);
        ret->promise.n_holders = 0;
        ret->known = (CounterUse){};
        ret->others = 0;
        TAILQ_FOREACH (other, &h->holds->granted, list)
                if (hold_claims_slot(other, h, pmu, cpu))
                        claims_add_hold(ret, other);
        if (ret->promise.n_holders > 0)
                h->holds->hooks.census(h->holds->userdata, pmu, cpu, claims_add_counted, ret);
}
