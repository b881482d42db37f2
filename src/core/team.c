/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define STACK_BYTES ((size_t) 128 * 1024)

typedef struct Work {
        TeamCall f;
        void *userdata;
        size_t n;
        atomic_size_t next, n_done;
} Work;

typedef struct Member {
        Team *team;
        unsigned lane;
        pthread_t thread;
} Member;

struct Team {
        pthread_mutex_t mutex;
        pthread_cond_t begin, end;
        Work *work;      /* NULL: nothing */
        unsigned n_busy; /* threads that are at work */
        bool stopped;
        void (*stuck)(void *userdata);
        void *userdata;
        unsigned n_members;
        Member members[];
};

static _Thread_local unsigned lane_of_thread;

unsigned team_lane(void) {
        return lane_of_thread;
}

/* ---- a thread ---- */

static void work_do(Work *w) {
        size_t i;

        while ((i = atomic_fetch_add(&w->next, 1)) < w->n) {
                w->f(w->userdata, i);
                atomic_fetch_add(&w->n_done, 1);
        }
}

static bool work_is_left(const Work *w) {
        return w && w->next < w->n;
}

/* NULL: it ends. The mutex is locked before and afterwards. */
static Work *team_await(Team *t) {
        while (!t->stopped && !work_is_left(t->work))
                (void) pthread_cond_wait(&t->begin, &t->mutex);
        return t->stopped ? NULL : t->work;
}

static void *member_run(void *userdata) {
        const Member *m = userdata;
        Team *t = m->team;
        Work *w;

        lane_of_thread = m->lane;
        (void) pthread_mutex_lock(&t->mutex);
        while ((w = team_await(t))) {
                t->n_busy++;
                (void) pthread_mutex_unlock(&t->mutex);
                work_do(w);
                (void) pthread_mutex_lock(&t->mutex);
                if (--t->n_busy == 0)
                        (void) pthread_cond_signal(&t->end);
        }
        (void) pthread_mutex_unlock(&t->mutex);
        return NULL;
}

/* ---- a team ---- */

static int team_start(Team *t, unsigned n, unsigned first_lane, const CpuSet *cpus) {
        sigset_t all, before;
        pthread_attr_t attr;
        int r;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        r = pthread_attr_setaffinity_np(&attr, cpus->n_words * sizeof(uint64_t),
                                        (const cpu_set_t *) cpus->words);
        while (r == 0 && t->n_members < n) {
                Member *m = &t->members[t->n_members];

                *m = (Member){ .team = t, .lane = first_lane + t->n_members };
                r = pthread_create(&m->thread, &attr, member_run, m);
                t->n_members += r == 0;
        }
        (void) pthread_attr_destroy(&attr);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        return t->n_members > 0 ? 0 : -r;
}

int team_new(Team **ret, unsigned n_threads, unsigned first_lane, const CpuSet *cpus) {
        _cleanup_(team_freep) Team *t = calloc(1, sizeof(Team) + n_threads * sizeof(Member));
        pthread_condattr_t clock;
        int r;

        if (!t)
                return -ENOMEM;
        (void) pthread_mutex_init(&t->mutex, NULL);
        (void) pthread_cond_init(&t->begin, NULL);
        (void) pthread_condattr_init(&clock);
        (void) pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&t->end, &clock);
        (void) pthread_condattr_destroy(&clock);
        r = team_start(t, n_threads, first_lane, cpus);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}

Team *team_free(Team *t) {
        if (!t)
                return NULL;
        (void) pthread_mutex_lock(&t->mutex);
        t->stopped = true;
        (void) pthread_cond_broadcast(&t->begin);
        (void) pthread_mutex_unlock(&t->mutex);
        while (t->n_members > 0)
                (void) pthread_join(t->members[--t->n_members].thread, NULL);
        (void) pthread_cond_destroy(&t->begin);
        (void) pthread_cond_destroy(&t->end);
        (void) pthread_mutex_destroy(&t->mutex);
        free(t);
        return NULL;
}

void team_set_stuck(Team *t, void (*stuck)(void *userdata), void *userdata) {
        t->stuck = stuck;
        t->userdata = userdata;
}

/* ---- work ---- */

/* The threads may be where this one is. */
static void team_let_go(Team *t) {
        cpu_set_t here;

        CPU_ZERO(&here);
        if (sched_getaffinity(0, sizeof(here), &here) < 0)
                memset(&here, 0xff, sizeof(here)); /* of CPUs that are not there none is meant */
        for (unsigned i = 0; i < t->n_members; i++)
                (void) pthread_setaffinity_np(t->members[i].thread, sizeof(here), &here);
        if (t->stuck)
                t->stuck(t->userdata);
        t->stuck = NULL;
}

static void team_give(Team *t, Work *w, size_t n_wanted) {
        (void) pthread_mutex_lock(&t->mutex);
        t->work = w;
        for (size_t i = 0; i < MIN(n_wanted, t->n_members); i++)
                (void) pthread_cond_signal(&t->begin);
        (void) pthread_mutex_unlock(&t->mutex);
}

static bool team_has_done(const Team *t, const Work *w) {
        return w->n_done == w->n && t->n_busy == 0;
}

static struct timespec patience_end(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += (long) (TEAM_PATIENCE_USEC * NSEC_PER_USEC);
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        return t;
}

static void team_wait(Team *t, Work *w) {
        struct timespec until = patience_end();
        size_t n_done = 0;

        (void) pthread_mutex_lock(&t->mutex);
        while (!team_has_done(t, w)) {
                if (pthread_cond_timedwait(&t->end, &t->mutex, &until) != ETIMEDOUT)
                        continue;
                if (w->n_done == n_done)
                        team_let_go(t);
                n_done = w->n_done;
                until = patience_end();
        }
        t->work = NULL;
        (void) pthread_mutex_unlock(&t->mutex);
}

void team_run(Team *t, size_t n, size_t n_each, TeamCall f, void *userdata) {
        Work w = { .f = f, .userdata = userdata, .n = n };

        if (!t || n < 2 * n_each) {
                work_do(&w);
                return;
        }
        team_give(t, &w, n / n_each);
        team_wait(t, &w);
}
