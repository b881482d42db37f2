/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* In place of core/team.c; see sim.h. */

#include "core/team.h"

#include "sim.h"

struct Team {
        unsigned n_threads;
        CpuSet cpus;
        uint64_t now_nsec[]; /* of each */
};

int team_new(Team **ret, unsigned n_threads, unsigned first_lane, const CpuSet *cpus) {
        Team *t;

        if (sim_is_alone())
                return -EAGAIN;
        t = calloc(1, sizeof(Team) + n_threads * sizeof(uint64_t));
        if (!t || cpuset_copy(&t->cpus, cpus) < 0)
                abort();
        t->n_threads = n_threads;
        *ret = t;
        return 0;
}

Team *team_free(Team *t) {
        if (t)
                cpuset_done(&t->cpus);
        free(t);
        return NULL;
}

unsigned team_lane(void) {
        return 0; /* the opener is asked by one after the other */
}

void team_set_stuck(Team *t, void (*stuck)(void *userdata), void *userdata) {
}

static unsigned earliest(const Team *t, unsigned n) {
        unsigned first = 0;

        for (unsigned i = 1; i < n; i++)
                if (t->now_nsec[i] < t->now_nsec[first])
                        first = i;
        return first;
}

static unsigned team_cpu(const Team *t, unsigned thread) {
        int cpu = cpuset_next(&t->cpus, 0);

        while (thread-- > 0 && cpuset_next(&t->cpus, (unsigned) cpu + 1) >= 0)
                cpu = cpuset_next(&t->cpus, (unsigned) cpu + 1);
        return (unsigned) cpu;
}

static unsigned team_wake(Team *t, size_t n_wanted) {
        unsigned n = (unsigned) MIN(n_wanted, t->n_threads);
        uint64_t now = sim_now_nsec();

        for (unsigned i = 0; i < n; i++)
                t->now_nsec[i] = now + (i + 1) * SIM_WAKE_NSEC;
        return n;
}

void team_run(Team *t, size_t n, size_t n_each, TeamCall f, void *userdata) {
        bool alone = !t || n < 2 * n_each;
        unsigned n_threads = alone ? 0 : team_wake(t, n / n_each), caller = sim_cpu;
        uint64_t last = 0;

        for (size_t i = 0; i < n; i++) {
                unsigned thread = alone ? 0 : earliest(t, n_threads);

                if (!alone) {
                        sim_cpu = team_cpu(t, thread);
                        sim_work_begin(t->now_nsec[thread]);
                }
                f(userdata, i);
                if (!alone) {
                        t->now_nsec[thread] = sim_work_end();
                        last = MAX(last, t->now_nsec[thread]);
                }
        }
        sim_cpu = caller;
        if (!alone)
                sim_set_now_nsec(last + SIM_WAKE_NSEC);
}
