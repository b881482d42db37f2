/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A process that a task wants to count and that is not its own: what it is, and how the two are
 * related.
 *
 * Whether the kernel would let the task trace it cannot be seen from outside: a Landlock domain is
 * nobody's to read. What the task's process has started itself, after the filter was installed, has
 * the task's domain or a narrower one, as long as the task does not enter another one later; so a
 * filter should forward landlock_restrict_self(2) too. Of any other process the client may show
 * that it may trace it (prover.h).
 *
 * Needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
 */

#include "broker/task.h"
#include "perf/process/process.h"

typedef struct OtherFacts OtherFacts;

/* Plain data: sent over a socket as it is. */
struct OtherFacts {
        ProcessFacts process;
        uint64_t start;    /* of the process: clock ticks since boot, as in /proc/PID/stat */
        bool descends;     /* from the task's process */
        bool proven;       /* the client that has started the task may trace it */
        bool same_label;   /* of the LSM, as the task's */
        bool no_new_privs; /* of its first thread */
        bool sandboxed;    /* the task may be in a narrower Landlock domain than the target */
        bool same_user_ns; /* as the task, ours or not */
};

/* The process that the thread tid is of. ret_pidfd holds it. prover: of prover.h, or -1; it is
 * asked about what does not descend. -ESRCH: there is none. */
int other_read(pid_t tid, const TaskFacts *task, int prover, OtherFacts *ret, int *ret_pidfd);

/* Whether it is still what other_read() has found. */
bool other_is_same(int pidfd, const OtherFacts *o);

/* The time in the unit of start. */
uint64_t other_now(void);
