/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The threads of a process, from /proc/PID/task. A list is a snapshot: a caller that must not miss
 * a thread takes another one afterwards and compares (threads_equal).
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct Threads Threads;

struct Threads {
        size_t n_tids;
        pid_t *tids; /* ascending */
};

#define THREADS_NULL ((Threads){})

/* May miss threads when another one ends meanwhile. REFUSAL_NO_SUCH_PROCESS; REFUSAL_NOT_PERMITTED:
 * /proc hides it. */
int threads_list(pid_t pid, Threads *ret, Refusal *why);

/* Whether these are all threads of the process now, reliably. -ENOMEM and the like. */
int threads_are_all(const Threads *t, pid_t pid, bool *ret);
void threads_done(Threads *t);
bool threads_equal(const Threads *a, const Threads *b);
const pid_t *threads_find(const Threads *t, pid_t tid); /* its element of tids, or NULL */
bool threads_has(const Threads *t, pid_t tid);

/* The thread that traces a thread; 0: none, or it has ended. While the kernel attaches or detaches
 * a tracer, TracerPid says the thread's parent for a moment, so it is read until it says the same
 * several times; after many tries the last answer counts. */
pid_t thread_tracer(pid_t tid);
