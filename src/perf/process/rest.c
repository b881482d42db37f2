/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perf/process/procfs.h"

/* Asleep, stopped or ended. Not D: a task that waits for memory while it creates another is so. */
#define STATES_RESTING "STtZX"

/* proc_pid_schedstat(5): its third number. 0, where the kernel does not count: unknown. */
static uint64_t thread_runs(pid_t tid) {
        _cleanup_free_ char *text = NULL;
        uint64_t runs;

        return procfs_read(tid, "schedstat", &text, NULL) == 0 &&
                               sscanf(text, "%*u %*u %" SCNu64, &runs) == 1
                       ? runs
                       : 0;
}

static bool thread_rests(pid_t tid) {
        _cleanup_free_ char *text = NULL;
        const char *fields =
                procfs_read(tid, "stat", &text, NULL) == 0 ? procfs_stat(text, NULL) : NULL;

        return fields && *fields && strchr(STATES_RESTING, *fields);
}

static bool rest_has(const Rest *r, pid_t pid) {
        for (size_t i = 0; i < r->n_processes; i++)
                if (r->processes[i].pid == pid)
                        return true;
        return false;
}

/* A thread that ran after its runs were read has rested only since: so they come first. */
static bool rest_add_thread(Rest *r, pid_t tid) {
        RestingThread *t = &r->threads[r->n_threads];

        if (r->n_threads == REST_THREADS_MAX)
                return false;
        *t = (RestingThread){ .tid = tid, .runs = thread_runs(tid) };
        r->n_threads++;
        return t->runs > 0 && thread_rests(tid);
}

bool rest_add(Rest *r, pid_t pid) {
        RestingProcess *p = &r->processes[r->n_processes];

        if (rest_has(r, pid))
                return true;
        if (r->n_processes == REST_PROCESSES_MAX)
                return false;
        *p = (RestingProcess){ .pid = pid };
        if (threads_list(pid, &p->threads, NULL) != 0)
                return false;
        r->n_processes++;
        for (size_t i = 0; i < p->threads.n_tids; i++)
                if (!rest_add_thread(r, p->threads.tids[i]))
                        return false;
        return true;
}

bool rest_lasts(const Rest *r) {
        for (size_t i = 0; i < r->n_threads; i++)
                if (thread_runs(r->threads[i].tid) != r->threads[i].runs)
                        return false;
        /* one that ran while the others were being read may have created another */
        for (size_t i = 0; i < r->n_processes; i++) {
                _cleanup_(threads_done) Threads now = THREADS_NULL;

                if (threads_list(r->processes[i].pid, &now, NULL) != 0 ||
                    !threads_equal(&now, &r->processes[i].threads))
                        return false;
        }
        return true;
}

void rest_done(Rest *r) {
        for (size_t i = 0; i < r->n_processes; i++)
                threads_done(&r->processes[i].threads);
        *r = REST_NULL;
}
