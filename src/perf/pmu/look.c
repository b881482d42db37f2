/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "look.h"

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/trial.h"

#define ATTEMPTS    4u
#define ALONE_RESTS 8u
#define NO_TASK     (-1)

/* What an attempt says besides a LookResult: it proves nothing, as this thread is on that CPU now,
 * or the CPU was offline meanwhile. */
#define ATTEMPT_VOID (LOOK_OFFLINE + 1)

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

/* Whether it has been on the PMU since it was opened, and when that was: known as well as a read is
 * fast. */
static bool event_was_on(int fd, uint64_t *ret_since_usec) {
        uint64_t took = UINT64_MAX;
        KernelTimes times;

        *ret_since_usec = 0;
        for (unsigned i = 0; took > LOOK_SURE_USEC && i < ATTEMPTS; i++) {
                uint64_t before = kernel_now_usec(), age;

                if (!kernel_times(fd, &times) || times.enabled == 0 ||
                    times.running < times.enabled)
                        return false;
                took = kernel_now_usec() - before;
                age = MIN(times.enabled / NSEC_PER_USEC, before);
                *ret_since_usec = MAX(*ret_since_usec, before - age);
        }
        return true;
}

/* Whether the tasks of the CPU did not run while the events were opened. */
static bool look_was_from_there(const Look *l) {
        return l->alone || kernel_opened_from() == l->cpu;
}

/* Who would run on this CPU has pinned events perhaps. After a short rest the next task was perhaps
 * a thread of the kernel, with work that this very look has made, so there are several; a long one
 * is enough. */
static int event_rest(int fd, unsigned rests) {
        uint64_t until = kernel_now_usec() + KERNEL_ELSEWHERE_USEC, since;
        bool on = true;

        for (unsigned i = 0; i < rests && on && kernel_now_usec() < until; i++) {
                kernel_rest(LOOK_REST_USEC);
                on = event_was_on(fd, &since);
        }
        return on ? LOOK_FREE : LOOK_TAKEN;
}

static int last_look(Look *l, int last) {
        uint64_t begun = l->seen_usec, since;

        if (!event_was_on(last, &since))
                return LOOK_TAKEN;
        l->seen_usec = MAX(since, begun);
        if (!l->alone && kernel_cpu() == l->cpu)
                return ATTEMPT_VOID;
        return look_was_from_there(l) ? event_rest(last, l->alone ? ALONE_RESTS : 1) : LOOK_FREE;
}

/* The kernel takes what is open off a CPU that goes, and does not put it back. */
static bool trial_was_on(const Trial *t) {
        KernelTimes first;

        return kernel_times(t->fds[0], &first) && first.running > 0;
}

static int counters_attempt(Look *l, Shape shape) {
        Trial mine = {}, *t = l->ready ? &l->trial : &mine;
        int r;

        l->seen_usec = kernel_now_usec();
        r = l->ready ? trial_open_last(t, l->pmu, shape, l->cpu)
                     : trial_open_counting(t, l->pmu, shape, l->cpu);
        l->ready = false; /* for one attempt */
        r = r < 0 ? look_failed(r, l->cpu) : last_look(l, t->fds[t->n - 1]);
        if (r == LOOK_FREE && !trial_was_on(t))
                r = ATTEMPT_VOID;
        trial_stop(t);
        trial_close(&mine);
        return r;
}

static int counters_look(void *userdata) {
        Look *l = userdata;

        return counters_attempt(l, l->wanted);
}

/* ---- how much is free ---- */

static int look_found(const Look *l) {
        return shape_contains(l->free, l->wanted) ? LOOK_FREE : LOOK_TAKEN;
}

static int count_general(Look *l, unsigned max, unsigned *ret) {
        int r = LOOK_TAKEN;

        for (*ret = max; *ret > 0; --*ret) {
                r = counters_attempt(l, (Shape){ .general = *ret });
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

                r = counters_attempt(l, (Shape){ .general = general, .fixed = *ret | bit });
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
        l->alone = true;
        return f(l);
}

/* The scheduler may move this thread to the CPU that it looks at. */
static int look_from_elsewhere(Look *l, int (*f)(void *userdata)) {
        int r = ATTEMPT_VOID;

        for (unsigned i = 0; r == ATTEMPT_VOID && i < ATTEMPTS; i++)
                r = look_from_best(l, f);
        return r == ATTEMPT_VOID ? LOOK_TAKEN : r;
}

static int look_conclude(Look *l, int r) {
        if (r < 0)
                return r;
        l->result = (LookResult) r;
        return 0;
}

/* ---- looks ---- */

static int look_once(Look *l) {
        l->seen_usec = kernel_now_usec();
        l->alone = false;
        if (shape_is_empty(l->wanted))
                return kernel_is_offline(l->cpu) ? LOOK_OFFLINE : LOOK_FREE;
        if (l->pmu->kind == PMU_BREAKPOINT)
                return breakpoints_look(l);
        return look_from_elsewhere(l, counters_look);
}

int look_at(Look *l) {
        uint64_t begun = kernel_now_usec();
        int r = look_conclude(l, look_once(l));

        l->took_usec = kernel_now_usec() - begun;
        l->free = r == 0 && l->result == LOOK_FREE ? l->wanted : SHAPE_NULL;
        return r;
}

int look_ready(Look *l) {
        int r = look_close(l);

        if (l->pmu->kind != PMU_CORE || shape_is_empty(l->wanted))
                return r;
        r = trial_open_ready(&l->trial, l->pmu, l->wanted, l->cpu);
        l->ready = r == 0;
        return trial_is_our_fault(r) ? r : 0;
}

int look_close(Look *l) {
        trial_close(&l->trial);
        l->ready = false;
        return 0;
}

int look_count(Look *l) {
        int r;

        l->seen_usec = kernel_now_usec();
        l->free = SHAPE_NULL;
        l->alone = false;
        if (l->pmu->kind == PMU_CORE)
                return look_conclude(l, look_from_elsewhere(l, counters_count));
        r = breakpoints_count(l, &l->free.general);
        return look_conclude(l, r == 0 ? look_found(l) : r);
}
