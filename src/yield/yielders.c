/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "yielders.h"

#include <string.h>

#include "core/clock.h"
#include "perf/group/switch.h"

#define SWITCHED_AT_ONCE 8u /* yielders, where threads switch (core/team.h), or are prepared */

void yielders_init(Yielders *r, const Ledger *ledger, void (*acknowledged)(void *userdata),
                   void *userdata) {
        *r = (Yielders){
                .ledger = ledger, .next_seq = 1, .acknowledged = acknowledged, .userdata = userdata
        };
}

static void yielder_count(Yielder *y) {
        bool counts = y->state == YIELDER_YIELDED && !y->absent;

        if (counts == y->counted || !y->yielders)
                return;
        y->counted = counts;
        if (y->yielders->counted)
                y->yielders->counted(y->yielders->userdata, counts ? 1 : -1);
}

void yielder_set_state(Yielder *y, YielderState state) {
        y->state = state;
        yielder_count(y);
}

void yielder_set_absent(Yielder *y, bool absent) {
        y->absent = absent;
        yielder_count(y);
}

static int yielder_init(Yielder *y) {
        int k = plan_monitor_init(&y->plan);

        return k < 0 ? k : cpuset_copy(&y->yielded, &y->plan.where);
}

static void yielder_done(Yielder *y) {
        plan_monitor_done(&y->plan);
        cpuset_done(&y->yielded);
}

void yielders_done(Yielders *r) {
        for (size_t i = 0; i < r->n_yielders; i++) {
                r->yielders[i]->yielders = NULL;
                yielder_done(r->yielders[i]);
        }
        free(r->yielders);
        free(r->plans);
        *r = (Yielders){};
}

static int yielders_reserve(Yielders *r) {
        size_t n = r->n_yielders + 1;
        Yielder **yielders;
        PlanMonitor **plans;

        /* room is there up to the next power of two */
        if (r->n_yielders > 0 && (r->n_yielders & (r->n_yielders - 1)) != 0)
                return 0;
        yielders = reallocarray(r->yielders, n * 2, sizeof(*yielders));
        if (!yielders)
                return -ENOMEM;
        r->yielders = yielders;
        plans = reallocarray(r->plans, n * 2, sizeof(*plans));
        if (!plans)
                return -ENOMEM;
        r->plans = plans;
        return 0;
}

/* The index of y, or where it would be: behind all of higher priority or greater age. */
static size_t yielders_place(const Yielders *r, const Yielder *y) {
        size_t low = 0, high = r->n_yielders;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const PlanMonitor *p = r->plans[middle];

                if (p->priority > y->plan.priority ||
                    (p->priority == y->plan.priority && p->seq < y->plan.seq))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void yielders_insert(Yielders *r, Yielder *y) {
        size_t place = yielders_place(r, y);
        size_t behind = r->n_yielders - place;

        memmove(r->yielders + place + 1, r->yielders + place, behind * sizeof(*r->yielders));
        memmove(r->plans + place + 1, r->plans + place, behind * sizeof(*r->plans));
        r->yielders[place] = y;
        r->plans[place] = &y->plan;
        r->n_yielders++;
        y->yielders = r;
}

static void yielders_take_out(Yielders *r, Yielder *y) {
        size_t place = yielders_place(r, y), behind;

        /* yielders of an earlier run may have equal seqs */
        while (r->yielders[place] != y)
                place++;
        behind = r->n_yielders - place - 1;
        memmove(r->yielders + place, r->yielders + place + 1, behind * sizeof(*r->yielders));
        memmove(r->plans + place, r->plans + place + 1, behind * sizeof(*r->plans));
        r->n_yielders--;
        y->yielders = NULL;
}

static bool yielders_demands(const Yielders *r, const Yielder *y) {
        return y->every_hold ? r->ledger->n_active > 0 : y->plan.must;
}

/* What the plan says is so now. */
static void yielder_set_yielded(Yielder *y) {
        if (y->plan.by_cpu)
                memcpy(y->yielded.words, y->plan.where.words,
                       y->plan.where.n_words * sizeof(uint64_t));
}

/* The plan says more than is so: that is done now. */
static void yielder_add_yielded(Yielder *y) {
        for (size_t i = 0; y->plan.by_cpu && i < y->plan.where.n_words; i++)
                y->yielded.words[i] |= y->plan.where.words[i];
}

/* As the plan says. */
static void yielder_start(Yielder *y) {
        y->fresh = false;
        yielder_set_yielded(y);
        if (!yielders_demands(y->yielders, y))
                return;
        yielder_set_state(y, YIELDER_YIELDED);
        if (y->ops->start)
                y->ops->start(y);
}

int yielders_enroll(Yielders *r, Yielder *y) {
        int k = yielders_reserve(r);

        if (k == 0)
                k = yielder_init(y);
        if (k < 0) {
                yielder_done(y);
                return k;
        }
        if (y->plan.seq == 0)
                y->plan.seq = r->next_seq;
        r->next_seq = MAX(r->next_seq, y->plan.seq + 1);
        yielders_insert(r, y);
        y->state = YIELDER_COUNTING;
        y->fresh = r->n_gathers > 0 && !y->every_hold;
        r->unsettled |= y->fresh;
        if (y->fresh)
                return 0;
        k = plan_compute(r->ledger, r->plans, r->n_yielders);
        if (k < 0) {
                yielders_take_out(r, y);
                yielder_done(y);
                return k;
        }
        yielder_start(y);
        return 0;
}

static void yielders_acknowledged(Yielders *r) {
        if (r->n_gathers > 0)
                r->to_acknowledge = true;
        else
                r->acknowledged(r->userdata);
}

void yielders_dismiss(Yielders *r, Yielder *y) {
        bool asked = y->state == YIELDER_ASKED;

        yielder_set_state(y, YIELDER_COUNTING);
        yielders_take_out(r, y);
        yielder_done(y);
        if (asked)
                yielders_acknowledged(r);
}

/* Whether it counts where it must not; or has yielded where it need not. */
static bool yielders_must_yield(const Yielders *r, const Yielder *y) {
        if (!yielders_demands(r, y))
                return false;
        return y->plan.by_cpu ? !cpuset_is_subset(&y->plan.where, &y->yielded)
                              : y->state == YIELDER_COUNTING;
}

static bool yielders_may_resume(const Yielders *r, const Yielder *y) {
        return y->plan.by_cpu ? !cpuset_is_subset(&y->yielded, &y->plan.where)
                              : y->state != YIELDER_COUNTING && !yielders_demands(r, y);
}

/* ---- those that are told at once ---- */

/* Asked by a hold that is over, while another one demands the same. */
static bool yielders_must_ask_again(const Yielders *r, const Yielder *y) {
        return y->state == YIELDER_ASKED && y->ops->is_over && yielders_demands(r, y) &&
               y->ops->is_over(y);
}

/* Returns how many are told. */
static size_t yielders_ask(Yielders *r, uint64_t hold, uint64_t deadline_usec) {
        size_t n_told = 0;

        for (size_t i = 0; i < r->n_yielders; i++) {
                Yielder *y = r->yielders[i];

                if (y->ops->sliced ||
                    (!yielders_must_yield(r, y) && !yielders_must_ask_again(r, y)))
                        continue;
                yielder_set_state(y, YIELDER_ASKED);
                n_told++;
                if (y->ops->yield(y, hold, deadline_usec) == 0)
                        yielder_set_state(y, YIELDER_YIELDED);
                yielder_add_yielded(y);
        }
        return n_told;
}

/* ---- those that are told in slices ---- */

/* Whether it counts where it must not: also when it was asked already. */
static bool yielder_is_late(const Yielders *r, const Yielder *y) {
        if (!yielders_demands(r, y))
                return false;
        return y->plan.by_cpu ? !cpuset_is_subset(&y->plan.where, &y->yielded)
                              : y->state != YIELDER_YIELDED;
}

/* The state of one that need not yield any more, or has done so. */
static YielderState yielder_reached(const Yielder *y) {
        return y->plan.by_cpu && !cpuset_is_empty(&y->yielded) ? YIELDER_YIELDED : YIELDER_COUNTING;
}

/* Asked is who has to yield and has not. Returns how many are new among them. */
static size_t yielders_mark(Yielders *r) {
        size_t n_asked = 0;

        for (size_t i = 0; i < r->n_yielders; i++) {
                Yielder *y = r->yielders[i];

                if (!y->ops->sliced || y->fresh)
                        continue;
                if (yielder_is_late(r, y)) {
                        n_asked += y->state != YIELDER_ASKED;
                        yielder_set_state(y, YIELDER_ASKED);
                } else if (y->state == YIELDER_ASKED)
                        yielder_set_state(y, yielder_reached(y));
        }
        return n_asked;
}

static void yielder_yield(Yielders *r, Yielder *y) {
        if (!yielder_is_late(r, y)) { /* by a plan that is applied later */
                yielder_set_state(y, yielder_reached(y));
                return;
        }
        (void) y->ops->yield(y, 0, 0);
        yielder_add_yielded(y);
        yielder_set_state(y, YIELDER_YIELDED);
}

/* Those that resume next, as far as they are prepared by the same function. */
static size_t yielders_prepare(const Yielders *r, size_t i) {
        size_t (*prepare)(Yielder *const *, size_t) = r->yielders[i]->ops->prepare;
        Yielder *next[SWITCHED_AT_ONCE];
        size_t n = 0;

        for (; i < r->n_yielders && n < ELEMENTSOF(next); i++) {
                if (!yielders_may_resume(r, r->yielders[i]))
                        continue;
                if (r->yielders[i]->ops->prepare != prepare)
                        break;
                next[n++] = r->yielders[i];
        }
        return prepare ? prepare(next, n) : 1;
}

static void yielder_resume(Yielders *r, Yielder *y) {
        if (!yielders_demands(r, y))
                yielder_set_state(y, YIELDER_COUNTING);
        y->ops->resume(y);
        yielder_set_yielded(y);
}

bool yielder_is_due(const Yielder *y) {
        const Yielders *r = y->yielders;

        return r && y->ops->sliced && (y->state == YIELDER_ASKED || yielders_may_resume(r, y));
}

static bool yielder_is_asked(const Yielders *r, const Yielder *y) {
        return y->ops->sliced && y->state == YIELDER_ASKED;
}

/* A slice of a turn. */
typedef struct Slice {
        uint64_t usec; /* UINT64_MAX: without end */
        uint64_t since, cpu_since;
        unsigned n;
} Slice;

static Slice slice_begin(const Yielders *r) {
        return (Slice){ .usec = r->busy ? r->slice_usec : UINT64_MAX,
                        .since = now_usec(CLOCK_MONOTONIC),
                        .cpu_since = now_usec(CLOCK_THREAD_CPUTIME_ID) };
}

/* What others take of the processor is not this one's; reading that clock is a system call. */
static bool slice_is_over(const Slice *s) {
        return s->n > 0 && s->usec != UINT64_MAX &&
               now_usec(CLOCK_MONOTONIC) - s->since >= s->usec &&
               now_usec(CLOCK_THREAD_CPUTIME_ID) - s->cpu_since >= s->usec;
}

/* Calls f for those of which is() is true. prepare (may be NULL) does some work for several of them
 * at once, from the i-th on, and returns how many these are: the slice does not end before f was
 * called for all of these. False: the slice is over before all were. */
static bool yielders_each(Yielders *r, Slice *s, bool (*is)(const Yielders *r, const Yielder *y),
                          void (*f)(Yielders *r, Yielder *y),
                          size_t (*prepare)(const Yielders *r, size_t i)) {
        size_t n_prepared = 0;

        for (size_t i = 0; i < r->n_yielders; i++) {
                if (!is(r, r->yielders[i]))
                        continue;
                if (n_prepared == 0 && slice_is_over(s))
                        return false;
                if (n_prepared == 0)
                        n_prepared = prepare ? prepare(r, i) : 1;
                n_prepared--;
                f(r, r->yielders[i]);
                if (++s->n % SWITCHED_AT_ONCE == 0)
                        switches_flush();
        }
        switches_flush(); /* before any of them is switched again */
        return true;
}

static void yielders_resume_others(Yielders *r) {
        for (size_t i = 0; i < r->n_yielders; i++)
                if (!r->yielders[i]->ops->sliced && yielders_may_resume(r, r->yielders[i]))
                        yielder_resume(r, r->yielders[i]);
}

/* False: there is more to do. */
static bool yielders_work(Yielders *r) {
        Slice s = slice_begin(r);
        bool done;

        switches_gather();
        done = yielders_each(r, &s, yielder_is_asked, yielder_yield, NULL);
        if (done)
                yielders_resume_others(r);
        done = done && yielders_each(r, &s, yielders_may_resume, yielder_resume, yielders_prepare);
        switches_settle();
        return done;
}

/* True: nothing is left. */
static bool yielders_work_some(Yielders *r) {
        bool done = yielders_work(r);

        if (!done)
                r->busy(r->userdata);
        return done;
}

/* Holds wait for each that yields, and for the last one that resumes. */
void yielders_go_on(Yielders *r) {
        bool yields = yielders_are_busy(r), done = yielders_work_some(r);

        if (yields || done)
                yielders_acknowledged(r);
}

bool yielders_are_busy(const Yielders *r) {
        for (size_t i = 0; i < r->n_yielders; i++)
                if (yielder_is_asked(r, r->yielders[i]))
                        return true;
        return false;
}

bool yielders_are_resuming(const Yielders *r, const Scope *scope) {
        for (size_t i = 0; i < r->n_yielders; i++) {
                const Yielder *y = r->yielders[i];

                if (y->ops->sliced && !y->fresh && yielders_may_resume(r, y) &&
                    scope_overlaps(scope, y->plan.scope))
                        return true;
        }
        return false;
}

/* ---- all ---- */

/* What the plan says that is not so yet; returns how many are told to yield. */
static size_t yielders_tell(Yielders *r, uint64_t hold, uint64_t deadline_usec) {
        size_t n_told = yielders_ask(r, hold, deadline_usec) + yielders_mark(r);

        (void) yielders_work_some(r);
        return n_told;
}

int yielders_apply(Yielders *r, uint64_t hold, uint64_t deadline_usec, size_t *ret_n_told) {
        size_t n_told = 0;

        if (r->n_gathers > 0) {
                r->unsettled = r->to_apply = true;
                r->hold = hold;
                r->deadline_usec = MAX(r->deadline_usec, deadline_usec);
        } else {
                int k = plan_compute(r->ledger, r->plans, r->n_yielders);

                if (k < 0)
                        return k;
                n_told = yielders_tell(r, hold, deadline_usec);
        }
        if (ret_n_told)
                *ret_n_told = n_told;
        return 0;
}

void yielders_gather(Yielders *r) {
        r->n_gathers++;
}

static int yielders_catch_up(Yielders *r) {
        int k = plan_compute(r->ledger, r->plans, r->n_yielders);

        if (k < 0)
                return k;
        r->unsettled = false;
        for (size_t i = 0; i < r->n_yielders; i++)
                if (r->yielders[i]->fresh)
                        yielder_start(r->yielders[i]);
        if (r->to_apply)
                (void) yielders_tell(r, r->hold, r->deadline_usec);
        r->to_apply = false;
        r->deadline_usec = 0;
        return 0;
}

int yielders_settle(Yielders *r) {
        int k = 0;

        if (--r->n_gathers > 0)
                return 0;
        if (r->unsettled)
                k = yielders_catch_up(r);
        if (r->to_acknowledge) {
                r->to_acknowledge = false;
                r->acknowledged(r->userdata);
        }
        return k;
}

void yielder_rank(Yielder *y, uint32_t priority, PlanClass klass) {
        Yielders *r = y->yielders;

        yielders_take_out(r, y);
        y->plan.priority = priority;
        y->plan.klass = klass;
        yielders_insert(r, y);
}

uint64_t yielders_grace(const Yielders *r) {
        uint64_t grace = 0;

        for (size_t i = 0; i < r->n_yielders; i++)
                if (r->yielders[i]->ops->grace)
                        grace = MAX(grace, r->yielders[i]->ops->grace(r->yielders[i]));
        return grace;
}

void yielder_acknowledge(Yielder *y) {
        if (y->state != YIELDER_ASKED || !y->yielders)
                return;
        yielder_set_state(y, YIELDER_YIELDED);
        yielders_acknowledged(y->yielders);
}

int yielders_asked(const Yielders *r, const Scope *scope,
                   int (*f)(void *userdata, const Yielder *y), void *userdata) {
        int n = 0;

        for (size_t i = 0; i < r->n_yielders; i++) {
                const Yielder *y = r->yielders[i];
                int k = 0;

                if (y->state != YIELDER_ASKED ||
                    (!y->every_hold && !scope_overlaps(scope, y->plan.scope)))
                        continue;
                n++;
                if (f)
                        k = f(userdata, y);
                if (k < 0)
                        return k;
        }
        return n;
}
