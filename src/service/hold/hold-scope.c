/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-scope.h"

#include <stdio.h>

#include "perf/process/procfs.h"

uint64_t holds_current(const Holds *holds) {
        const Hold *h = TAILQ_FIRST(&holds->granted) ?: TAILQ_FIRST(&holds->pending);

        return h ? h->object.id : 0;
}

bool holds_grants(const Holds *holds, uid_t uid, const Pmu *pmu) {
        const Hold *h;

        TAILQ_FOREACH (h, &holds->granted, list)
                if (h->object.uid == uid && scope_find(&h->request.what.scope, pmu->index))
                        return true;
        return false;
}

/* Where the PMU counts what is asked for on these CPUs (NULL: on any of its own): the driver of a
 * unit that several CPUs share takes any of them, and counts on one of its own. */
static const CpuSet *pmu_counts_on(const Pmu *pmu, const CpuSet *cpus) {
        return cpus && (pmu->kind != PMU_UNCORE || cpuset_is_subset(cpus, &pmu->cpus)) ? cpus
                                                                                       : &pmu->cpus;
}

/* Another user's exclusive hold on one of these slots, granted or about to be. */
static const Hold *exclusive_holder(const Holds *holds, uid_t uid, unsigned pmu,
                                    const CpuSet *cpus) {
        const Scope scope = { .n_parts = 1, .parts = &(ScopePart){ .pmu = pmu, .cpus = *cpus } };
        LedgerHold *l;

        if (!ledger_demands(&holds->context->ledger, &scope, SLOT_EXCLUSIVE))
                return NULL;
        TAILQ_FOREACH (l, &holds->context->ledger.holds, list)
                if (l->state == LEDGER_ACTIVE && l->exclusive &&
                    hold_of_ledger(l)->object.uid != uid && scope_overlaps(&l->scope, &scope))
                        return hold_of_ledger(l);
        return NULL;
}

/* To a user. What took an unattended hold may have ended. */
static void holder_describe(const Hold *h, uid_t to, char *ret, size_t size) {
        if (to != 0 && procfs_hides())
                (void) snprintf(ret, size, "another user");
        else if (h->request.unattended)
                (void) snprintf(ret, size, "uid %u", (unsigned) h->object.uid);
        else
                (void) snprintf(ret, size, "pid %d of uid %u", (int) h->pid,
                                (unsigned) h->object.uid);
}

static int pmu_admit_opening(const Holds *holds, uid_t uid, const Event *e, const CpuSet *cpus,
                             Refusal *why) {
        const Pmu *pmu = e->pmu;
        const Hold *h = exclusive_holder(holds, uid, pmu->index, pmu_counts_on(pmu, cpus));
        char who[64];

        if (!h)
                return 0;
        holder_describe(h, uid, who, sizeof(who));
        return refuse(why, REFUSAL_BUSY,
                      "'%s': %s holds PMU %s exclusively; wait until that hold ends", e->name, who,
                      pmu->name);
}

int holds_admit_opening(const Holds *holds, uid_t uid, const Event *events, size_t n_events,
                        const CpuSet *cpus, Refusal *why) {
        int r = 0;

        for (size_t i = 0; i < n_events; i++)
                for (size_t unit = 0; unit < event_units(&events[i]) && r == 0; unit++)
                        r = pmu_admit_opening(holds, uid, event_on(&events[i], unit), cpus, why);
        return r;
}

static bool holds_cover_slot(const Holds *holds, uid_t uid, const Pmu *pmu, unsigned cpu) {
        const Hold *h;

        TAILQ_FOREACH (h, &holds->granted, list)
                if (h->object.uid == uid && scope_has(&h->request.what.scope, pmu->index, cpu))
                        return true;
        return false;
}

bool holds_cover(const Holds *holds, uid_t uid, const Pmu *pmu, const CpuSet *cpus) {
        const CpuSet *all = cpus ? pmu_counts_on(pmu, cpus) : &holds->context->pmus.online;

        CPU_FOREACH (cpu, all)
                if (cpuset_has(&pmu->cpus, (unsigned) cpu) &&
                    !holds_cover_slot(holds, uid, pmu, (unsigned) cpu))
                        return false;
        return true;
}

int holds_admit_pinned(const Holds *holds, uid_t uid, const Event *events, size_t n_events,
                       const CpuSet *cpus, const char *field, Refusal *why) {
        for (size_t i = 0; i < n_events; i++)
                for (size_t unit = 0; unit < event_units(&events[i]); unit++) {
                        const Pmu *pmu = event_on(&events[i], unit)->pmu;

                        if (!holds_cover(holds, uid, pmu, cpus))
                                return refuse(why, REFUSAL_NOT_PERMITTED,
                                              "%s takes counters away from all other users and "
                                              "therefore needs a hold on PMU %s; take one first "
                                              "(Hold, perfalloc --pmu)",
                                              field, pmu->name);
                }
        return 0;
}
