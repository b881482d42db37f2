/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Processes that do nothing for a while: each of their threads sleeps at the beginning, and has not
 * been on a CPU since. None of them can have created a thread meanwhile, nor be about to.
 */

#include "perf/process/threads.h"

typedef struct Rest Rest;
typedef struct RestingProcess RestingProcess;
typedef struct RestingThread RestingThread;

/* For what is quick: with more it is not tried to tell. */
#define REST_PROCESSES_MAX 4u
#define REST_THREADS_MAX   16u

struct RestingProcess {
        pid_t pid;
        Threads threads;
};

struct RestingThread {
        pid_t tid;
        uint64_t runs; /* how often it has been on a CPU */
};

struct Rest {
        size_t n_processes, n_threads;
        RestingProcess processes[REST_PROCESSES_MAX];
        RestingThread threads[REST_THREADS_MAX];
};

#define REST_NULL ((Rest){})

/* One more process; again for the same one does nothing. False: it does not rest, or that cannot be
 * told; the whole is of no use then. */
bool rest_add(Rest *r, pid_t pid);

/* Whether all have rested since they were added. */
bool rest_lasts(const Rest *r);

void rest_done(Rest *r);
