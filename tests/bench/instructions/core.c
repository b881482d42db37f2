/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The hot paths without a bus, for tests/bench/instructions/compare, which counts them under
 * callgrind: a dump of the counts is made whenever mark() is entered. Prints for each dump, in
 * order, what was done since the one before, and how often.
 */

#include <stdio.h>

#include "core/plan.h"
#include "core/tick.h"
#include "perf/event/event-parse.h"
#include "perf/group/group-cpu.h"
#include "perf/group/group-open.h"
#include "perf/group/group-read.h"
#include "perf/group/group-start.h"
#include "perf/group/group.h"

#define N_HOLDS    10000u
#define N_MONITORS 64u
#define TIMES      200u
#define N_CPUS     "0-3"

static struct {
        const char *name;
        unsigned times;
} marks[32];
static size_t n_marks;

/* Ends a part. times 0: its counts are ignored. */
__attribute__((noinline)) void mark(const char *name, unsigned times);
__attribute__((noinline)) void mark(const char *name, unsigned times) {
        marks[n_marks].name = name;
        marks[n_marks++].times = times;
}

static void check(int r, const char *what) {
        if (r == 0)
                return;
        (void) fprintf(stderr, "%s: %d\n", what, r);
        exit(EXIT_FAILURE);
}

static Scope scope_of(const char *list) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        Scope scope = SCOPE_NULL;

        check(cpuset_parse(&cpus, list, NULL), "CPUs");
        check(scope_add(&scope, 0, &cpus), "scope");
        return scope;
}

/* ---- the ledger ---- */

static void holds_admit(Ledger *l, LedgerHold *holds, bool exclusive) {
        for (unsigned i = 0; i < N_HOLDS; i++) {
                holds[i] = (LedgerHold){ .scope = scope_of(N_CPUS), .exclusive = exclusive };
                check(ledger_admit(l, &holds[i], true) < 0, "admit");
        }
}

static void holds_remove(Ledger *l, LedgerHold *holds) {
        for (unsigned i = 0; i < N_HOLDS; i++) {
                ledger_remove(l, &holds[i]);
                scope_done(&holds[i].scope);
        }
}

static void ledger_visit(Ledger *l, const char *name, int expected) {
        LedgerHold h = { .scope = scope_of(N_CPUS), .exclusive = expected == LEDGER_E_WAITS };

        mark("set up", 0);
        for (unsigned i = 0; i < TIMES; i++) {
                check(ledger_admit(l, &h, true) != expected, "admit");
                ledger_remove(l, &h);
        }
        mark(name, TIMES);
        scope_done(&h.scope);
}

/* The active hold ends, the next one is admitted, and the first one is queued again. */
static void ledger_take_turns(Ledger *l, LedgerHold *holds) {
        mark("set up", 0);
        for (unsigned i = 0; i < TIMES; i++) {
                ledger_remove(l, &holds[i]);
                check(ledger_next(l) != &holds[i + 1], "next");
                check(ledger_admit(l, &holds[i], true) != LEDGER_E_WAITS, "admit");
        }
        mark("ledger-turn", TIMES);
}

static void plan(const Ledger *l) {
        PlanMonitor monitors[N_MONITORS], *sorted[N_MONITORS];
        Scope scope = scope_of(N_CPUS);

        for (unsigned i = 0; i < N_MONITORS; i++) {
                monitors[i] = (PlanMonitor){ .scope = &scope, .use.takes.general = 1, .seq = i };
                sorted[i] = &monitors[i];
        }
        mark("set up", 0);
        for (unsigned i = 0; i < TIMES; i++)
                check(plan_compute(l, sorted, N_MONITORS), "plan");
        mark(l->n_partial > 0 ? "plan-partial" : "plan-full", TIMES);
        scope_done(&scope);
}

static void ledgers(void) {
        LedgerHold *holds = calloc(N_HOLDS, sizeof(LedgerHold));
        LedgerHold partial = { .scope = scope_of("0-1"), .counters = 2 };
        Ledger l;

        check(!holds, "memory");
        ledger_init(&l);
        check(ledger_set_capacity(&l, 0, 6), "capacity");
        holds_admit(&l, holds, false);
        ledger_visit(&l, "ledger-shared", 0);
        plan(&l);
        check(ledger_admit(&l, &partial, false), "admit");
        plan(&l);
        ledger_remove(&l, &partial);
        holds_remove(&l, holds);
        holds_admit(&l, holds, true);
        ledger_visit(&l, "ledger-queue", LEDGER_E_WAITS);
        ledger_take_turns(&l, holds);
        holds_remove(&l, holds);
        ledger_done(&l);
        scope_done(&partial.scope);
        free(holds);
}

/* ---- counters ---- */

static void read_group(void) {
        _cleanup_(pmu_table_done) PmuTable pmus = {};
        _cleanup_(group_freep) Group *g = NULL;
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        Event *events = calloc(1, sizeof(Event));
        Refusal why = REFUSAL_NULL;
        Reading reading;

        check(!events, "memory");
        check(pmu_table_load(&pmus, "/sys"), "PMUs");
        check(cpuset_parse(&cpus, "0", NULL), "CPUs");
        check(event_parse(&pmus, "page-faults:u", events, &why), why.text);
        check(group_new(GROUP_CPU, events, 1, &g, &why), why.text);
        check(group_add_cpus(g, &cpus, &pmus.online), "parts");
        check(group_open(g, &why), why.text);
        group_start(g);
        mark("set up", 0);
        for (unsigned i = 0; i < TIMES; i++)
                group_read(g, 0, &reading);
        mark("group-read", TIMES);
        check(reading.quality != QUALITY_EXACT, "quality");
}

static void ticks(void) {
        Tick t = { .start_usec = 1000, .interval_usec = 1000 };
        TickCount count = {};
        uint64_t slot = 0;

        mark("set up", 0);
        for (unsigned i = 1; i <= TIMES; i++) {
                check(!tick_take(&t, i * 2000 + 100, &slot), "tick");
                check(tick_due(&t) == TICK_NEVER || tick_count_missed(&count, slot) > 1, "slot");
                tick_count_tell(&count, slot);
        }
        mark("tick", TIMES);
}

int main(void) {
        ledgers();
        read_group();
        ticks();
        for (size_t i = 0; i < n_marks; i++)
                printf("%s\t%u\n", marks[i].name, marks[i].times);
        return EXIT_SUCCESS;
}
