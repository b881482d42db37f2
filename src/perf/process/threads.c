/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "threads.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include <sys/resource.h>

#include "perf/process/procfs.h"

/* So many readings have to agree: where tracers come and go without rest, one in 100 is wrong. */
#define TRACER_READINGS 3
#define TRACER_TRIES    20

static int compare_tids(const void *a, const void *b) {
        pid_t x = *(const pid_t *) a, y = *(const pid_t *) b;

        return x < y ? -1 : x > y;
}

static int threads_add(Threads *t, pid_t tid) {
        /* grow by doubling: room is there up to the next power of two */
        if ((t->n_tids & (t->n_tids - 1)) == 0) {
                pid_t *tids = reallocarray(t->tids, t->n_tids ? t->n_tids * 2 : 1, sizeof(pid_t));
                if (!tids)
                        return -ENOMEM;
                t->tids = tids;
        }
        t->tids[t->n_tids++] = tid;
        return 0;
}

static void closedirp(DIR **d) {
        if (*d)
                closedir(*d);
}

int threads_list(pid_t pid, Threads *ret, Refusal *why) {
        _cleanup_(threads_done) Threads t = THREADS_NULL;
        _cleanup_(closedirp) DIR *d = NULL;
        char path[sizeof("/proc/4294967295/task")];

        (void) snprintf(path, sizeof(path), "/proc/%u/task", (unsigned) pid);
        d = opendir(path);
        if (!d && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
                return -errno;
        for (struct dirent *e; d && (e = readdir(d));) {
                pid_t tid = (pid_t) strtol(e->d_name, NULL, 10);
                int r = tid > 0 ? threads_add(&t, tid) : 0;

                if (r < 0)
                        return r;
        }
        if (t.n_tids == 0)
                return procfs_refuse_unseen((pid_t) pid, why);

        qsort(t.tids, t.n_tids, sizeof(pid_t), compare_tids);
        *ret = t;
        t = THREADS_NULL;
        return 0;
}

/* When the thread that the kernel listed last ends, its walk through /proc/PID/task continues by
 * counting from the start, and skips a living one. If all listed threads still exist afterwards,
 * that did not happen. */
int threads_are_all(const Threads *t, pid_t pid, bool *ret) {
        *ret = true;
        for (int i = 0; i < 2 && *ret; i++) {
                _cleanup_(threads_done) Threads now = THREADS_NULL;
                int r = threads_list(pid, &now, NULL);

                if (r < 0)
                        return r;
                *ret = threads_equal(t, &now);
        }
        return 0;
}

void threads_done(Threads *t) {
        free(t->tids);
        *t = THREADS_NULL;
}

bool threads_equal(const Threads *a, const Threads *b) {
        return a->n_tids == b->n_tids &&
               (a->n_tids == 0 || memcmp(a->tids, b->tids, a->n_tids * sizeof(pid_t)) == 0);
}

const pid_t *threads_find(const Threads *t, pid_t tid) {
        return t->n_tids == 0 ? NULL
                              : bsearch(&tid, t->tids, t->n_tids, sizeof(pid_t), compare_tids);
}

bool threads_has(const Threads *t, pid_t tid) {
        return threads_find(t, tid);
}

static pid_t tracer_read(pid_t tid) {
        _cleanup_free_ char *text = NULL;
        const char *field;

        if (procfs_read(tid, "status", &text, NULL) < 0)
                return 0;
        field = procfs_field(text, "TracerPid");
        return field ? (pid_t) strtol(field, NULL, 10) : 0;
}

pid_t thread_tracer(pid_t tid) {
        pid_t tracer = tracer_read(tid);

        for (int i = 1, same = 1; tracer > 0 && same < TRACER_READINGS && i < TRACER_TRIES; i++) {
                pid_t now;

                /* The kernel changes it under tasklist_lock, which this call waits for. */
                (void) getpriority(PRIO_PGRP, 0);
                now = tracer_read(tid);
                same = now == tracer ? same + 1 : 1;
                tracer = now;
        }
        return tracer;
}
