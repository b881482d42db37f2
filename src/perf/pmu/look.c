/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "look.h"

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/trial.h"

#define ATTEMPTS 4u
#define NO_TASK  (-1)

bool look_can(const Pmu *pmu) {
        return pmu->measured && (pmu->kind == PMU_CORE || pmu->kind == PMU_BREAKPOINT);
}

static int look_failed(int error, unsigned cpu) {
        if (trial_is_our_fault(error))
                return error;
        return kernel_is_offline(cpu) ? LOOK_OFFLINE : LOOK_TAKEN;
}

/* ---- breakpoints ---- */

static int breakpoints_count(unsigned cpu, unsigned max, unsigned *ret) {
        const struct perf_event_attr attr = capacity_breakpoint();
        int fds[TRIAL_MAX], r = 0;
        unsigned n = 0;

        max = MIN(max, TRIAL_MAX);
        while (n < max && (r = kernel_open(&attr, NO_TASK, (int) cpu, -1)) >= 0)
                fds[n++] = r;
        for (unsigned i = 0; i < n; i++)
                kernel_close(fds[i]);
        if (n == max)
                r = 0;
        else if (r != -ENOSPC)
                return look_failed(r, cpu);
        *ret = n;
        return 0;
}

static int breakpoints_look(unsigned cpu, unsigned wanted) {
        unsigned n;
        int r = breakpoints_count(cpu, wanted, &n);

        return r != 0 ? r : n >= wanted ? LOOK_FREE : LOOK_TAKEN;
}

/* ---- counters ---- */

static bool group_was_on(const Trial *t) {
        KernelTimes times;

        return kernel_times(t->fds[0], &times) && times.enabled > 0 &&
               times.running == times.enabled;
}

/* Leaves the group open where it is on. */
static int group_look(Trial *t, const Pmu *pmu, unsigned cpu, Shape shape) {
        int r = trial_open(t, pmu, shape, cpu);

        if (r == 0)
                r = kernel_enable(t->fds[0]);
        if (r == 0 && group_was_on(t))
                return LOOK_FREE;
        trial_close(t);
        return look_failed(r, cpu);
}

/* Nobody else runs on a CPU while this thread does; whoever would has pinned events perhaps. */
static int group_look_on(const Trial *t) {
        kernel_rest(LOOK_REST_USEC);
        return group_was_on(t) ? LOOK_FREE : LOOK_TAKEN;
}

/* What passes in the rest is no matter: a group that is on all the time took nobody's turn. */
static int counters_look(const Pmu *pmu, unsigned cpu, Shape shape, bool elsewhere) {
        uint64_t begun = kernel_now_usec();
        bool in_time;
        Trial t;
        int r = group_look(&t, pmu, cpu, shape);

        if (r != LOOK_FREE)
                return r;
        trial_close(&t);
        r = group_look(&t, pmu, cpu, shape);
        if (r != LOOK_FREE)
                return r;
        in_time = kernel_now_usec() - begun < pmu->turn_usec;
        if (!elsewhere)
                r = group_look_on(&t);
        trial_close(&t);
        return r == LOOK_FREE && !in_time ? LOOK_DISTURBED : r;
}

int look_at(const Pmu *pmu, unsigned cpu, Shape shape, bool elsewhere, uint64_t *ret_usec) {
        int r = LOOK_DISTURBED;

        for (unsigned i = 0; r == LOOK_DISTURBED && i < ATTEMPTS; i++) {
                *ret_usec = kernel_now_usec();
                if (shape_is_empty(shape))
                        r = kernel_is_offline(cpu) ? LOOK_OFFLINE : LOOK_FREE;
                else
                        r = pmu->kind == PMU_BREAKPOINT ? breakpoints_look(cpu, shape.general)
                                                        : counters_look(pmu, cpu, shape, elsewhere);
        }
        return r;
}

/* ---- how much is free ---- */

static int count_general(const Pmu *pmu, unsigned cpu, bool elsewhere, unsigned max,
                         unsigned *ret) {
        uint64_t usec;

        for (unsigned n = max; n > 0; n--) {
                int r = look_at(pmu, cpu, (Shape){ .general = n }, elsewhere, &usec);

                if (r < 0 || r == LOOK_OFFLINE)
                        return r;
                if (r == LOOK_FREE) {
                        *ret = n;
                        return 0;
                }
        }
        *ret = 0;
        return 0;
}

/* Beside all the general ones that are free, or else the event would take one of these. */
static int count_fixed(const Pmu *pmu, unsigned cpu, bool elsewhere, unsigned general,
                       uint32_t wanted, uint32_t *ret) {
        uint64_t usec;

        for (*ret = 0; wanted; wanted &= wanted - 1) {
                uint32_t bit = wanted & -wanted;
                Shape shape = { .general = general, .fixed = *ret | bit };
                int r = look_at(pmu, cpu, shape, elsewhere, &usec);

                if (r < 0 || r == LOOK_OFFLINE)
                        return r;
                if (r == LOOK_FREE)
                        *ret |= bit;
        }
        return 0;
}

int look_count(const Pmu *pmu, unsigned cpu, Shape shape, bool elsewhere, Shape *ret) {
        Shape found = SHAPE_NULL;
        int r;

        if (pmu->kind == PMU_BREAKPOINT)
                r = breakpoints_count(cpu, shape.general, &found.general);
        else
                r = count_general(pmu, cpu, elsewhere,
                                  MIN(shape.fixed ? pmu->counters : shape.general, pmu->counters),
                                  &found.general);
        if (r == 0 && shape.fixed)
                r = count_fixed(pmu, cpu, elsewhere, found.general, shape.fixed, &found.fixed);
        if (r == 0)
                *ret = shape_common(found, shape);
        return r;
}
