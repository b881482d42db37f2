/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The threads of a process, from /proc/PID/task. A list is a snapshot: who must not miss a thread
 * takes it again afterwards and compares (threads_equal).
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct Threads Threads;

struct Threads {
        size_t n_tids;
        pid_t *tids; /* ascending */
};

#define THREADS_NULL ((Threads){})

/* What lives may be missing when another thread ends meanwhile. REFUSAL_NO_SUCH_PROCESS when there
 * is no such process (or /proc hides it from us). */
int threads_list(pid_t pid, Threads *ret, Refusal *why);

/* Whether these are all threads of the process now, without fail. -ENOMEM and the like. */
int threads_are_all(const Threads *t, pid_t pid, bool *ret);
void threads_done(Threads *t);
bool threads_equal(const Threads *a, const Threads *b);
const pid_t *threads_find(const Threads *t, pid_t tid); /* its place in tids, or NULL */
bool threads_has(const Threads *t, pid_t tid);
