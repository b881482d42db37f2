/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the reader (reader.h) answers. r is 0, a refusal (why is filled in) or a negative errno; the
 * results are valid until the callback returns.
 */

#include "perf/process/process.h"
#include "perf/process/seize.h"
#include "perf/process/users.h"

typedef struct ReaderJob ReaderJob;
typedef struct ReaderTree ReaderTree;

#define READER_SCAN_MAX_USEC  (10 * USEC_PER_SEC) /* a longer scan ends with what it has found */
#define READER_SEIZE_MAX_USEC (2 * USEC_PER_SEC)  /* the longest bound of a seized tree */

/* A process and its descendants, stopped (perf/process/seize.h). */
struct ReaderTree {
        const ProcessFacts *processes; /* as they are now; the tracer is the reader's child */
        size_t n_processes;
        const SeizedThread *threads;
        size_t n_threads;
};

/* neighbour: the process that asks is in the service's PID and user namespaces. */
typedef void (*ReaderInspected)(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                const Refusal *why);
typedef void (*ReaderProven)(void *userdata, int r, int pidfd, const Refusal *why);
typedef void (*ReaderScanned)(void *userdata, int r, const User *users, size_t n_users,
                              bool complete);
typedef void (*ReaderEnded)(void *userdata, int r);
typedef void (*ReaderSeized)(void *userdata, int r, const ReaderTree *tree, const Refusal *why);
