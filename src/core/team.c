/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "team.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/util.h"

#define TEAM_MAX       32u
#define CPUS_A_THREAD  8u
#define CALLS_A_THREAD 8u /* with fewer, waking it takes longer than the calls themselves */
#define STACK_BYTES    65536u

typedef struct Work {
        void (*f)(void *userdata, size_t i);
        void *userdata;
        size_t n;
        atomic_size_t next;
} Work;

typedef struct Team {
        pthread_t threads[TEAM_MAX];
        unsigned n_threads;
        pthread_mutex_t mutex;
        pthread_cond_t begin, end;
        Work *work;      /* NULL: nothing, or nothing more to begin */
        unsigned n_busy; /* threads that are at work */
        bool stopped;
} Team;

static Team team = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                     .begin = PTHREAD_COND_INITIALIZER,
                     .end = PTHREAD_COND_INITIALIZER };

unsigned team_size_for(unsigned n_cpus) {
        return n_cpus < 2 * CPUS_A_THREAD ? 0 : MIN(n_cpus / CPUS_A_THREAD, TEAM_MAX);
}

static void work_do(Work *w) {
        size_t i;

        while ((i = atomic_fetch_add(&w->next, 1)) < w->n)
                w->f(w->userdata, i);
}

/* NULL: it ends. The mutex is locked before and afterwards. */
static Work *team_await(void) {
        while (!team.stopped && !team.work)
                (void) pthread_cond_wait(&team.begin, &team.mutex);
        return team.stopped ? NULL : team.work;
}

static void *team_member(void *unused) {
        Work *w;

        (void) pthread_mutex_lock(&team.mutex);
        while ((w = team_await())) {
                team.n_busy++;
                (void) pthread_mutex_unlock(&team.mutex);
                work_do(w);
                (void) pthread_mutex_lock(&team.mutex);
                team.work = NULL;
                if (--team.n_busy == 0)
                        (void) pthread_cond_signal(&team.end);
        }
        (void) pthread_mutex_unlock(&team.mutex);
        return NULL;
}

void team_start(unsigned n_threads) {
        pthread_attr_t attr;
        sigset_t all, before;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        while (team.n_threads < MIN(n_threads, TEAM_MAX) &&
               pthread_create(&team.threads[team.n_threads], &attr, team_member, NULL) == 0)
                team.n_threads++;
        (void) pthread_attr_destroy(&attr);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void team_stop(void) {
        (void) pthread_mutex_lock(&team.mutex);
        team.stopped = true;
        (void) pthread_cond_broadcast(&team.begin);
        (void) pthread_mutex_unlock(&team.mutex);
        while (team.n_threads > 0)
                (void) pthread_join(team.threads[--team.n_threads], NULL);
        team.stopped = false;
}

unsigned team_size(void) {
        return team.n_threads;
}

/* Wakes as many as have enough to do. */
static void team_give(Work *w) {
        size_t n_wanted = MIN(w->n / CALLS_A_THREAD, team.n_threads);

        (void) pthread_mutex_lock(&team.mutex);
        team.work = w;
        for (size_t i = 0; i < n_wanted; i++)
                (void) pthread_cond_signal(&team.begin);
        (void) pthread_mutex_unlock(&team.mutex);
}

/* Who has not begun by now finds nothing. The next work is given only when all have ended. */
static void team_take_back(void) {
        (void) pthread_mutex_lock(&team.mutex);
        team.work = NULL;
        while (team.n_busy > 0)
                (void) pthread_cond_wait(&team.end, &team.mutex);
        (void) pthread_mutex_unlock(&team.mutex);
}

void team_run(size_t n, void (*f)(void *userdata, size_t i), void *userdata) {
        Work w = { .f = f, .userdata = userdata, .n = n };
        bool helped = n >= 2 * CALLS_A_THREAD && team.n_threads > 0;

        if (helped)
                team_give(&w);
        work_do(&w);
        if (helped)
                team_take_back();
}
