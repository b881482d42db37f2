/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One thread, held so that its number cannot come to mean another one unnoticed.
 *
 * The first thread of a process is held by its pidfd. A directory of /proc holds any other (and is
 * to be had before Linux 6.9's PIDFD_THREAD): it belongs to the thread and not to its number, and
 * what is in it is gone when the thread is. Who was found under the number before something was
 * done by it, and is there afterwards, was there all the time.
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct Thread Thread;

struct Thread {
        pid_t tid;
        pid_t pid;     /* of its process */
        int pidfd;     /* likewise */
        int directory; /* /proc/TID; -1: of the first thread */
};

#define THREAD_NULL ((Thread){ .pidfd = -1, .directory = -1 })

/* tid may be that of any thread of a process. Refusals are those of process_open(), and
 * REFUSAL_NOT_PERMITTED where /proc hides a thread (proc(5), hidepid=). */
int thread_hold(pid_t tid, Thread *ret, Refusal *why);
void thread_release(Thread *t);

/* 0: it has not ended, and its process has not become another one (execve(2)); -ESRCH: it has;
 * otherwise why that cannot be told (-EMFILE...). */
int thread_check(const Thread *t);
bool thread_exists(const Thread *t);
