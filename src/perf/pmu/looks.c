/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "looks.h"

#include <stdatomic.h>

#include "perf/pmu/kernel.h"
#include "perf/pmu/perf-open.h"

#define LOOKS_MIN 8u /* fewer are made by this thread */

/* A team, and the CPUs that it runs on. */
typedef struct Side {
        Team *team;
        CpuSet cpus;
} Side;

static struct {
        Side first, second;
        bool strayed; /* they are where they should not be */
} sides;

/* ---- the teams ---- */

int looks_divide(const CpuSet *cpus, CpuSet *ret_team, CpuSet *ret_others) {
        unsigned i = 0;
        int r = 0;

        *ret_team = *ret_others = CPUSET_NULL;
        if (cpuset_count(cpus) < LOOKS_CPUS_MIN)
                return 0;
        CPU_FOREACH (cpu, cpus) {
                r = cpuset_add(i++ % LOOKS_ONE_IN == 0 ? ret_team : ret_others, (unsigned) cpu);
                if (r < 0)
                        break;
        }
        if (r < 0) {
                cpuset_done(ret_team);
                cpuset_done(ret_others);
        }
        return r;
}

static void looks_stray(void *unused) {
        sides.strayed = true;
        perf_open_let_go();
}

static int side_start(Side *s, unsigned n_threads, unsigned first_lane, const CpuSet *cpus) {
        int r = cpuset_copy(&s->cpus, cpus);

        if (r >= 0)
                r = perf_open_add_lanes(n_threads, cpus);
        if (r >= 0)
                r = team_new(&s->team, n_threads, first_lane, cpus);
        if (r >= 0)
                team_set_stuck(s->team, looks_stray, NULL);
        return r;
}

int looks_start(const CpuSet *team, const CpuSet *others) {
        unsigned n = MIN(cpuset_count(team), LOOKS_THREADS_MAX);
        int r;

        if (n == 0)
                return 0;
        sides.strayed = false;
        r = side_start(&sides.first, n, 1, team);
        if (r >= 0) /* it has a third of the CPUs to look at */
                r = side_start(&sides.second, (n + 1) / 2, n + 1, others);
        if (r < 0)
                looks_stop();
        return r;
}

static void side_stop(Side *s) {
        s->team = team_free(s->team);
        cpuset_done(&s->cpus);
        s->cpus = CPUSET_NULL;
}

void looks_stop(void) {
        side_stop(&sides.first);
        side_stop(&sides.second);
}

Team *looks_team(void) {
        return sides.first.team;
}

/* ---- looks ---- */

static int looks_make_here(Look **looks, size_t n, int (*f)(Look *l)) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = f(looks[i]);
        return r;
}

typedef struct Pass {
        const Side *side;
        Look **looks;
        int (*f)(Look *l);
        atomic_int error;
        atomic_bool strayed;
} Pass;

static bool side_has(const Side *s, unsigned cpu) {
        return cpu == KERNEL_NOWHERE || cpuset_has(&s->cpus, cpu);
}

static void pass_look(void *userdata, size_t i) {
        Pass *p = userdata;
        int r = p->error == 0 ? p->f(p->looks[i]) : 0, none = 0;

        if (r < 0)
                (void) atomic_compare_exchange_strong(&p->error, &none, r);
        if (!side_has(p->side, kernel_cpu()) || !side_has(p->side, kernel_opened_from()))
                p->strayed = true;
}

static int pass_run(const Side *s, Look **looks, size_t n, int (*f)(Look *l)) {
        Pass p = { .side = s, .looks = looks, .f = f };

        if (n == 1)
                return f(looks[0]);
        team_run(s->team, n, 1, pass_look, &p);
        sides.strayed |= p.strayed;
        return p.error;
}

/* Those of the first team's CPUs go to the end: how many there are. */
static size_t looks_sort(Look **looks, size_t n) {
        size_t n_others = 0;

        for (size_t i = 0; i < n; i++)
                if (!cpuset_has(&sides.first.cpus, looks[i]->cpu)) {
                        Look *l = looks[i];

                        looks[i] = looks[n_others];
                        looks[n_others++] = l;
                }
        return n - n_others;
}

static int looks_make_by_teams(Look **looks, size_t n, int (*f)(Look *l)) {
        size_t n_second = looks_sort(looks, n), n_first = n - n_second;
        int r = pass_run(&sides.first, looks, n_first, f);

        return r == 0 ? pass_run(&sides.second, looks + n_first, n_second, f) : r;
}

int looks_make(Look **looks, size_t n, int (*f)(Look *l)) {
        int r;

        if (!sides.first.team || sides.strayed || n < LOOKS_MIN)
                return looks_make_here(looks, n, f);
        r = looks_make_by_teams(looks, n, f);
        return sides.strayed ? looks_make_here(looks, n, f) : r;
}
