/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capacity.h"

#include <linux/hw_breakpoint.h>
#include <string.h>

#include "perf/pmu/kernel.h"
#include "perf/pmu/pmu-alias.h"
#include "perf/pmu/trial.h"

#define CANDIDATES_MAX 24u
#define MYSELF         0

typedef struct Candidate {
        PmuEvent event;
        unsigned copies; /* so many of it fit into one group */
        bool own;        /* it has a counter of its own */
} Candidate;

typedef struct Capacity {
        const Pmu *pmu;
        unsigned cpu;
        size_t n;
        Candidate candidates[CANDIDATES_MAX];
        bool unlimited; /* the driver takes whatever it is told */
} Capacity;

/* Those that programs use most go first: of two that share a counter the first has it. */
static const struct {
        const char *name;
        uint64_t config;
} generic[] = {
        { "instructions", PERF_COUNT_HW_INSTRUCTIONS },
        { "cycles", PERF_COUNT_HW_CPU_CYCLES },
        { "ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES },
        { "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
        { "branch-misses", PERF_COUNT_HW_BRANCH_MISSES },
        { "cache-references", PERF_COUNT_HW_CACHE_REFERENCES },
        { "cache-misses", PERF_COUNT_HW_CACHE_MISSES },
        { "bus-cycles", PERF_COUNT_HW_BUS_CYCLES },
        { "stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
        { "stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
};

/* ---- groups ---- */

/* Puts up to n of the event into the group: how many are in it now, or -errno for want of memory or
 * descriptors. */
static int capacity_fill(const Capacity *c, Trial *t, const PmuEvent *e, unsigned n) {
        int r = 0;

        for (unsigned i = 0; r == 0 && i < n; i++)
                r = trial_add_event(t, e, c->cpu);
        if (trial_is_our_fault(r)) {
                trial_close(t);
                return r;
        }
        return (int) t->n;
}

/* Whether so many of the event fit into the group as it is, which stays so. */
static int capacity_fits(const Capacity *c, Trial *t, const PmuEvent *e, unsigned n) {
        unsigned before = t->n;
        int r = capacity_fill(c, t, e, n);

        if (r < 0)
                return r;
        while (t->n > before)
                kernel_close(t->fds[--t->n]);
        return (unsigned) r == before + n;
}

/* ---- candidates ---- */

static int capacity_add(Capacity *c, const PmuEvent *e) {
        Trial t = {};
        int copies;

        if (c->n == CANDIDATES_MAX)
                return 0;
        copies = capacity_fill(c, &t, e, TRIAL_MAX);
        trial_close(&t);
        if (copies <= 0)
                return copies;
        c->unlimited |= copies == (int) TRIAL_MAX;
        c->candidates[c->n++] = (Candidate){ .event = *e, .copies = (unsigned) copies };
        return 0;
}

static int capacity_add_generic(Capacity *c) {
        int r = 0;

        for (size_t i = 0; r == 0 && !c->unlimited && i < ELEMENTSOF(generic); i++) {
                PmuEvent e = { .type = PERF_TYPE_HARDWARE, .config = generic[i].config };

                /* the extended type in the upper half chooses the PMU on hybrid CPUs */
                if (c->pmu->type != PERF_TYPE_RAW)
                        e.config |= (uint64_t) c->pmu->type << PERF_PMU_TYPE_SHIFT;
                (void) strcpy(e.name, generic[i].name);
                r = capacity_add(c, &e);
        }
        return r;
}

/* One that may be another name of cycles or instructions would hide their counter. */
static bool alias_may_repeat(const char *name) {
        return strstr(name, "cycle") || strstr(name, "inst") || strstr(name, "clk");
}

static int capacity_add_alias(void *userdata, const PmuEvent *alias) {
        Capacity *c = userdata;
        bool slots = strcmp(alias->name, "slots") == 0;

        if (c->unlimited || (!slots && (c->n >= 2 || alias_may_repeat(alias->name))))
                return 0;
        return capacity_add(c, alias);
}

/* The one of which most fit into a group, of all or of those without a counter of their own. */
static Candidate *capacity_most(Capacity *c, bool without_own, const Candidate *except) {
        Candidate *most = NULL;

        for (size_t i = 0; i < c->n; i++) {
                Candidate *e = &c->candidates[i];

                if (e != except && !(without_own && e->own) && (!most || e->copies > most->copies))
                        most = e;
        }
        return most;
}

/* ---- which have a counter of their own ---- */

/* One fits and two do not: otherwise the group has left general counters free, as one of an event
 * does that only some of them can count. */
static int capacity_own(const Capacity *c, Trial *full, Candidate *e) {
        int r = capacity_fits(c, full, &e->event, 1);

        e->own = r > 0;
        return r > 0 ? capacity_fits(c, full, &e->event, 2) : MIN(r, 0);
}

/* Judges all that are not the base beside a group that is full of it. 1: the base leaves room. */
static int capacity_judge(Capacity *c, const Candidate *base, Candidate *only) {
        Trial full = {};
        int r = capacity_fill(c, &full, &base->event, base->copies);

        r = MIN(r, 0);
        for (size_t i = 0; r == 0 && i < c->n; i++)
                if (&c->candidates[i] != base && (!only || &c->candidates[i] == only))
                        r = capacity_own(c, &full, &c->candidates[i]);
        trial_close(&full);
        return r;
}

/* The general event: one that has no counter of its own and fills all that are general. NULL: there
 * is none, or nobody can tell. */
static int capacity_general(Capacity *c, Candidate **ret) {
        Candidate *most = capacity_most(c, false, NULL), *other;
        int r;

        *ret = NULL;
        if (!most || c->unlimited)
                return 0;
        r = capacity_judge(c, most, NULL);
        other = r == 0 ? capacity_most(c, true, most) : NULL;
        if (!other)
                return MIN(r, 0);
        r = capacity_judge(c, other, most);
        if (r == 0)
                *ret = capacity_most(c, true, NULL);
        return MIN(r, 0);
}

/* ---- what it comes to ---- */

/* Two events may share a counter: all that are listed fit at once, besides all general ones. */
static int capacity_list_fixed(const Capacity *c, Pmu *pmu) {
        Trial full = {};
        int r = capacity_fill(c, &full, &pmu->general, pmu->counters);

        for (size_t i = 0; r >= 0 && i < c->n && pmu->n_fixed < SHAPE_FIXED_MAX; i++) {
                unsigned before = full.n;

                if (!c->candidates[i].own)
                        continue;
                r = capacity_fill(c, &full, &c->candidates[i].event, 1);
                if (full.n > before)
                        pmu->fixed[pmu->n_fixed++] = c->candidates[i].event;
        }
        trial_close(&full);
        return MIN(r, 0);
}

static int capacity_list_probed(const Capacity *c, Pmu *pmu) {
        char text[CANDIDATES_MAX * PMU_EVENT_NAME_MAX] = "", *end = text, *copy;

        for (size_t i = 0; i < c->n; i++) {
                if (i > 0)
                        *end++ = ' ';
                end = stpcpy(end, c->candidates[i].event.name);
        }
        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        free(pmu->probed);
        pmu->probed = copy;
        return 0;
}

static int capacity_of_cpu(const PmuTable *table, Pmu *pmu, unsigned cpu) {
        Capacity c = { .pmu = pmu, .cpu = cpu };
        Candidate *general = NULL;
        int r = capacity_add_generic(&c);

        if (r == 0 && !c.unlimited)
                r = pmu_alias_visit(table->sysfs, pmu, capacity_add_alias, &c);
        if (r == 0)
                r = capacity_general(&c, &general);
        if (r < 0 || !general)
                return r;
        pmu->general = general->event;
        pmu->counters = general->copies;
        r = capacity_list_fixed(&c, pmu);
        if (r == 0)
                r = capacity_list_probed(&c, pmu);
        pmu->measured = r == 0;
        return r;
}

/* One CPU tells for all of the PMU. */
static int capacity_of_core(const PmuTable *table, Pmu *pmu) {
        CPU_FOREACH (cpu, &pmu->cpus)
                if (cpuset_has(&table->online, (unsigned) cpu) &&
                    !kernel_is_offline((unsigned) cpu))
                        return capacity_of_cpu(table, pmu, (unsigned) cpu);
        return CAPACITY_E_OFFLINE;
}

/* ---- breakpoints ---- */

struct perf_event_attr capacity_breakpoint(void) {
        /* watched only while its slot is open, and never enabled */
        static volatile uint64_t word;

        return (struct perf_event_attr){
                .size = sizeof(struct perf_event_attr),
                .type = PERF_TYPE_BREAKPOINT,
                .disabled = 1,
                .exclude_kernel = 1,
                .bp_type = HW_BREAKPOINT_W,
                .bp_addr = (uint64_t) (uintptr_t) &word,
                .bp_len = HW_BREAKPOINT_LEN_8,
        };
}

/* How many this process may have on the CPU now; 0 where it cannot be told. */
static int breakpoints_of_cpu(unsigned cpu) {
        const struct perf_event_attr attr = capacity_breakpoint();
        int fds[TRIAL_MAX], r = 0;
        unsigned n = 0;

        while (n < TRIAL_MAX && (r = kernel_open(&attr, MYSELF, (int) cpu, -1)) >= 0)
                fds[n++] = r;
        for (unsigned i = 0; i < n; i++)
                kernel_close(fds[i]);
        if (trial_is_our_fault(r))
                return r;
        return n == 0 && r == -ENOSPC ? (int) kernel_breakpoint_slots() : (int) n;
}

/* Others may have slots on some CPUs, or on all of them, while this looks. */
static int capacity_of_breakpoints(Pmu *pmu) {
        char *probed = strdup("mem:w");
        int best = 0;

        CPU_FOREACH (cpu, &pmu->cpus) {
                int n = breakpoints_of_cpu((unsigned) cpu);

                if (n < 0 || !probed) {
                        free(probed);
                        return MIN(n, -ENOMEM);
                }
                best = MAX(best, n);
        }
        free(pmu->probed);
        pmu->probed = probed;
        pmu->counters = (unsigned) (best > 0 ? MAX(best, (int) kernel_breakpoint_slots()) : 0);
        pmu->measured = best > 0 && best < (int) TRIAL_MAX;
        return 0;
}

int capacity_measure(const PmuTable *t, Pmu *pmu) {
        pmu->measured = pmu->kind == PMU_SOFTWARE || pmu->kind == PMU_TRACEPOINT;
        pmu->counters = pmu->n_fixed = 0;
        if (pmu->kind == PMU_CORE)
                return capacity_of_core(t, pmu);
        return pmu->kind == PMU_BREAKPOINT ? capacity_of_breakpoints(pmu) : 0;
}
