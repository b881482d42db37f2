/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One thread, held so that a reuse of its number is noticed.
 *
 * The first thread of a process is held by its pidfd, any other by an open directory of /proc,
 * which works before Linux 6.9's PIDFD_THREAD too: the directory belongs to the thread, and is
 * empty once the thread has ended. A thread that exists before and after something was done by its
 * number existed all the time.
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct Thread Thread;

struct Thread {
        pid_t tid;
        pid_t pid;     /* of its process */
        int pidfd;     /* of its process */
        int directory; /* /proc/TID; -1: it is the first thread */
};

#define THREAD_NULL ((Thread){ .pidfd = -1, .directory = -1 })

/* tid: of any thread of a process. Refusals are those of process_open(), and
 * REFUSAL_NOT_PERMITTED where /proc hides a thread (proc(5), hidepid=). */
int thread_hold(pid_t tid, Thread *ret, Refusal *why);
void thread_release(Thread *t);

/* 0: it exists, in the same process (execve(2) may change that); -ESRCH: it does not; else why that
 * is unknown (-EMFILE...). */
int thread_check(const Thread *t);
