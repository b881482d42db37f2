/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "look.h"

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/trial.h"

#define ATTEMPTS 4u
#define NO_TASK  (-1)

typedef struct Looking {
        const Pmu *pmu;
        unsigned cpu;
        Shape shape;
        bool counts;
        LookSeen seen;
        Shape found;
} Looking;

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

/* Who would run on this CPU has pinned events perhaps. What passes meanwhile is no matter: a group
 * that stays on takes nobody's turn. */
static int group_rest(const Trial *t) {
        kernel_rest(LOOK_REST_USEC);
        return group_was_on(t) ? LOOK_FREE : LOOK_TAKEN;
}

static int counters_look(Looking *l, Shape shape) {
        uint64_t begun = kernel_now_usec();
        bool disturbed;
        Trial t;
        int r = group_look(&t, l->pmu, l->cpu, shape);

        if (r != LOOK_FREE)
                return r;
        trial_close(&t);
        r = group_look(&t, l->pmu, l->cpu, shape);
        if (r != LOOK_FREE)
                return r;
        l->seen.usec = kernel_now_usec();
        disturbed = l->seen.usec - begun >= l->pmu->turn_usec ||
                    (!l->seen.alone && kernel_cpu() == l->cpu); /* moved there just now */
        if (l->seen.alone)
                r = group_rest(&t);
        trial_close(&t);
        return r == LOOK_FREE && disturbed ? LOOK_DISTURBED : r;
}

static int look_once(Looking *l, Shape shape) {
        l->seen.usec = kernel_now_usec();
        if (shape_is_empty(shape))
                return kernel_is_offline(l->cpu) ? LOOK_OFFLINE : LOOK_FREE;
        return l->pmu->kind == PMU_BREAKPOINT ? breakpoints_look(l->cpu, shape.general)
                                              : counters_look(l, shape);
}

static int look_often(Looking *l, Shape shape) {
        int r = LOOK_DISTURBED;

        for (unsigned i = 0; r == LOOK_DISTURBED && i < ATTEMPTS; i++)
                r = look_once(l, shape);
        return r;
}

/* ---- how much is free ---- */

static int count_general(Looking *l, unsigned max, unsigned *ret) {
        for (unsigned n = max; n > 0; n--) {
                int r = look_often(l, (Shape){ .general = n });

                if (r == LOOK_FREE)
                        *ret = n;
                if (r != LOOK_TAKEN)
                        return r == LOOK_FREE ? 0 : r;
        }
        return 0;
}

/* Beside all the general ones that are free, or else the event would take one of these. */
static int count_fixed(Looking *l, unsigned general, uint32_t *ret) {
        for (uint32_t rest = l->shape.fixed; rest; rest &= rest - 1) {
                uint32_t bit = rest & -rest;
                int r = look_often(l, (Shape){ .general = general, .fixed = *ret | bit });

                if (r == LOOK_FREE)
                        *ret |= bit;
                else if (r != LOOK_TAKEN)
                        return r;
        }
        return 0;
}

static int count(Looking *l) {
        unsigned max = MIN(l->shape.fixed ? l->pmu->counters : l->shape.general, l->pmu->counters);
        Shape found = SHAPE_NULL;
        int r = l->pmu->kind == PMU_BREAKPOINT
                        ? breakpoints_count(l->cpu, l->shape.general, &found.general)
                        : count_general(l, max, &found.general);

        if (r == 0 && l->shape.fixed)
                r = count_fixed(l, found.general, &found.fixed);
        l->found = shape_common(found, l->shape);
        return r;
}

/* ---- from where ---- */

static int look_from_here(void *userdata) {
        Looking *l = userdata;

        return l->counts ? count(l) : look_often(l, l->shape);
}

static int look_from_best(Looking *l) {
        int r;

        l->seen.alone = false;
        if (l->pmu->kind != PMU_CORE || kernel_cpu() != l->cpu)
                return look_from_here(l);
        r = kernel_elsewhere(l->cpu, look_from_here, l);
        if (r != -EAGAIN)
                return r;
        l->seen.alone = true;
        return look_from_here(l);
}

/* The scheduler may move this thread to the CPU that it looks at. */
static int look_until_told(Looking *l, LookSeen *ret) {
        int r = LOOK_DISTURBED;

        for (unsigned i = 0; r == LOOK_DISTURBED && i < ATTEMPTS; i++)
                r = look_from_best(l);
        *ret = l->seen;
        return r;
}

int look_at(const Pmu *pmu, unsigned cpu, Shape shape, LookSeen *ret) {
        Looking l = { .pmu = pmu, .cpu = cpu, .shape = shape };

        return look_until_told(&l, ret);
}

int look_count(const Pmu *pmu, unsigned cpu, Shape shape, Shape *ret, LookSeen *ret_seen) {
        Looking l = { .pmu = pmu, .cpu = cpu, .shape = shape, .counts = true };
        int r = look_until_told(&l, ret_seen);

        *ret = l.found;
        return r;
}
