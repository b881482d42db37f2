/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "look.h"

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/trial.h"

#define ATTEMPTS    4u
#define ALONE_RESTS 8u
#define NO_TASK     (-1)

enum {
        /* what one attempt says besides a LookResult */
        ATTEMPT_SLOW = LOOK_OFFLINE + 1,
        ATTEMPT_MOVED, /* this thread is on that CPU now */
};

bool look_can(const Pmu *pmu) {
        return pmu->measured && (pmu->kind == PMU_CORE || pmu->kind == PMU_BREAKPOINT);
}

static int look_failed(int error, unsigned cpu) {
        if (trial_is_our_fault(error))
                return error;
        return kernel_is_offline(cpu) ? (int) LOOK_OFFLINE : (int) LOOK_TAKEN;
}

/* ---- breakpoints ---- */

static int breakpoints_count(Look *l, unsigned *ret) {
        const struct perf_event_attr attr = capacity_breakpoint();
        unsigned max = MIN(l->wanted.general, TRIAL_MAX), n = 0;
        int fds[TRIAL_MAX], r = 0;

        while (n < max && (r = kernel_open(&attr, NO_TASK, (int) l->cpu, -1)) >= 0)
                fds[n++] = r;
        l->seen_usec = kernel_now_usec();
        for (unsigned i = 0; i < n; i++)
                kernel_close(fds[i]);
        if (n == max)
                r = 0;
        else if (r != -ENOSPC)
                return look_failed(r, l->cpu);
        *ret = n;
        return 0;
}

static int breakpoints_look(Look *l) {
        unsigned n;
        int r = breakpoints_count(l, &n);

        return r != 0 ? r : n >= l->wanted.general ? LOOK_FREE : LOOK_TAKEN;
}

/* ---- counters ---- */

static bool group_was_on(const Trial *t) {
        KernelTimes times;

        return kernel_times(t->fds[0], &times) && times.enabled > 0 &&
               times.running == times.enabled;
}

static bool group_stands_still(const Trial *t) {
        KernelTimes times;

        return kernel_times(t->fds[0], &times) && times.enabled == 0;
}

/* Leaves the group open where it is on. */
static int group_look(Trial *t, const Pmu *pmu, unsigned cpu, Shape shape) {
        int r = trial_open(t, pmu, shape, cpu);

        if (r == 0)
                r = kernel_enable(t->fds[0]);
        if (r == 0 && group_was_on(t))
                return LOOK_FREE;
        if (r == 0 && group_stands_still(t)) {
                trial_wake(pmu, cpu);
                if (group_was_on(t))
                        return LOOK_FREE;
        }
        trial_close(t);
        return r < 0 ? look_failed(r, cpu) : LOOK_TAKEN;
}

/* Whether the tasks of the CPU did not run while the group was opened. */
static bool look_was_from_there(const Look *l) {
        return l->alone || kernel_opened_from() == l->cpu;
}

/* Who would run on this CPU has pinned events perhaps. What passes meanwhile is no matter: a group
 * that stays on takes nobody's turn. After a short rest the next task was perhaps a thread of the
 * kernel, with work that this very look has made, so there are several; a long one is enough. */
static int group_rest(const Trial *t, unsigned rests) {
        uint64_t until = kernel_now_usec() + KERNEL_ELSEWHERE_USEC;
        bool on = true;

        for (unsigned i = 0; i < rests && on && kernel_now_usec() < until; i++) {
                kernel_rest(LOOK_REST_USEC);
                on = group_was_on(t);
        }
        return on ? LOOK_FREE : LOOK_TAKEN;
}

/* The group is left open where it is on for sure, or perhaps; else t->n is 0. */
static int counters_attempt(Look *l, Shape shape, Trial *t, uint64_t *ret_took) {
        uint64_t begun = kernel_now_usec();
        int r = group_look(t, l->pmu, l->cpu, shape);

        if (r != LOOK_FREE)
                return r;
        trial_close(t);
        r = group_look(t, l->pmu, l->cpu, shape);
        if (r != LOOK_FREE)
                return r;
        l->seen_usec = kernel_now_usec();
        *ret_took = l->seen_usec - begun;
        if (!l->alone && kernel_cpu() == l->cpu)
                r = ATTEMPT_MOVED;
        else if (look_was_from_there(l))
                r = group_rest(t, l->alone ? ALONE_RESTS : 1);
        return r == LOOK_FREE && *ret_took >= l->pmu->turn_usec ? ATTEMPT_SLOW : r;
}

/* So many others at most can be before a group that is on; each turn moves one of them behind it,
 * at last the group itself. Those turns that came while it was opened are as many more. */
static int look_watch(Look *l, const Trial *t, uint64_t took) {
        uint64_t others = shape_size(pmu_whole(l->pmu)) - shape_size(l->wanted),
                 turns = others + took / l->pmu->turn_usec + 3;

        l->watched = malloc(sizeof(*t));
        if (!l->watched)
                return -ENOMEM;
        *l->watched = *t;
        l->watched_shape = l->wanted;
        l->until_usec = l->seen_usec + turns * l->pmu->turn_usec;
        return LOOK_WATCHED;
}

static int counters_look(void *userdata) {
        Look *l = userdata;
        uint64_t took = 0;
        Trial t = {};
        int r = counters_attempt(l, l->wanted, &t, &took);

        if (r == ATTEMPT_SLOW) {
                r = look_watch(l, &t, took);
                if (r == LOOK_WATCHED)
                        return r;
        }
        trial_close(&t);
        return r;
}

static int look_again(Look *l) {
        l->seen_usec = kernel_now_usec();
        if (group_was_on(l->watched))
                return l->seen_usec < l->until_usec ? LOOK_WATCHED : LOOK_FREE;
        look_done(l);
        return LOOK_TAKEN;
}

/* ---- how much is free ---- */

static int look_found(const Look *l) {
        return shape_contains(l->free, l->wanted) ? LOOK_FREE : LOOK_TAKEN;
}

static int count_attempt(Look *l, Shape shape) {
        int r = ATTEMPT_SLOW;

        for (unsigned i = 0; r == ATTEMPT_SLOW && i < ATTEMPTS; i++) {
                uint64_t took;
                Trial t = {};

                r = counters_attempt(l, shape, &t, &took);
                trial_close(&t);
        }
        return r == ATTEMPT_SLOW ? LOOK_TAKEN : r;
}

static int count_general(Look *l, unsigned max, unsigned *ret) {
        int r = LOOK_TAKEN;

        for (*ret = max; *ret > 0; --*ret) {
                r = count_attempt(l, (Shape){ .general = *ret });
                if (r != LOOK_TAKEN)
                        break;
        }
        return r;
}

/* Beside all the general ones that are free, or else the event would take one of these. */
static int count_fixed(Look *l, unsigned general, uint32_t *ret) {
        int r = LOOK_TAKEN;

        for (uint32_t rest = l->wanted.fixed; rest; rest &= rest - 1) {
                uint32_t bit = rest & -rest;

                r = count_attempt(l, (Shape){ .general = general, .fixed = *ret | bit });
                if (r == LOOK_FREE)
                        *ret |= bit;
                else if (r != LOOK_TAKEN)
                        break;
        }
        return r;
}

static int counters_count(void *userdata) {
        Look *l = userdata;
        unsigned all = l->pmu->counters;
        Shape found = SHAPE_NULL;
        int r = count_general(l, l->wanted.fixed ? all : MIN(l->wanted.general, all),
                              &found.general);

        if (r == LOOK_TAKEN || r == LOOK_FREE)
                r = count_fixed(l, found.general, &found.fixed);
        l->free = shape_common(found, l->wanted);
        return r == LOOK_TAKEN || r == LOOK_FREE ? look_found(l) : r;
}

/* ---- from where ---- */

static int look_from_best(Look *l, int (*f)(void *userdata)) {
        int r;

        l->alone = false;
        if (kernel_cpu() != l->cpu)
                return f(l);
        r = kernel_elsewhere(l->cpu, f, l);
        if (r != -EAGAIN)
                return r;
        look_done(l); /* it may have begun there */
        l->alone = true;
        return f(l);
}

/* The scheduler may move this thread to the CPU that it looks at. */
static int look_from_elsewhere(Look *l, int (*f)(void *userdata)) {
        int r = ATTEMPT_MOVED;

        for (unsigned i = 0; r == ATTEMPT_MOVED && i < ATTEMPTS; i++)
                r = look_from_best(l, f);
        return r == ATTEMPT_MOVED ? LOOK_TAKEN : r;
}

static int look_conclude(Look *l, int r) {
        if (r < 0)
                return r;
        l->result = (LookResult) r;
        return 0;
}

/* ---- looks ---- */

static int look_once(Look *l) {
        if (l->watched && shape_equal(l->watched_shape, l->wanted))
                return look_again(l);
        look_done(l);
        l->seen_usec = kernel_now_usec();
        l->alone = false;
        if (shape_is_empty(l->wanted))
                return kernel_is_offline(l->cpu) ? LOOK_OFFLINE : LOOK_FREE;
        if (l->pmu->kind == PMU_BREAKPOINT)
                return breakpoints_look(l);
        return look_from_elsewhere(l, counters_look);
}

int look_at(Look *l) {
        int r = look_conclude(l, look_once(l));

        l->free = r == 0 && l->result == LOOK_FREE ? l->wanted : SHAPE_NULL;
        return r;
}

int look_count(Look *l) {
        int r;

        look_done(l);
        l->seen_usec = kernel_now_usec();
        l->free = SHAPE_NULL;
        l->alone = false;
        if (l->pmu->kind == PMU_CORE)
                return look_conclude(l, look_from_elsewhere(l, counters_count));
        r = breakpoints_count(l, &l->free.general);
        return look_conclude(l, r == 0 ? look_found(l) : r);
}

void look_done(Look *l) {
        if (!l->watched)
                return;
        trial_close(l->watched);
        free(TAKE_PTR(l->watched));
}
