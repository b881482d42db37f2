/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stops a process and all its living descendants for a moment (ptrace(2): SEIZE and INTERRUPT), so
 * that events can be opened on every thread while no thread or process is created. All that a
 * target sees is EINTR from a system call that the kernel cannot restart (signal(7)).
 *
 * Descendants are found from parent to child: a process whose parent has ended has left the tree. A
 * parent inside vfork(2) cannot be stopped and need not be: it waits as long as its child stands.
 *
 * The caller must do nothing else, have no other children, block SIGCHLD and end soon after: its
 * end detaches threads that could not be stopped (such parents). If it is killed, all are detached.
 */

#include "perf/process/process.h"

typedef struct Seize Seize;
typedef struct SeizeRule SeizeRule;
typedef struct SeizedThread SeizedThread;

/* The client, whose trace rule every process passes before it is stopped and again afterwards. */
struct SeizeRule {
        bool any;  /* no rule: the client may count processes that it may not trace */
        uid_t uid; /* the client's, with any as well */
        const gid_t *gids;
        size_t n_gids;
        pid_t family; /* tracers that are children of this process detach soon; 0: no such family */
};

/* Plain data: it travels over a socket as it is. */
struct SeizedThread {
        pid_t tid;
        pid_t pid;
};

/* Stops the tree below the process behind pidfd, until looking again finds nothing new.
 * deadline_usec is CLOCK_MONOTONIC. REFUSAL_BUSY: the tree does not stand by then, or a thread is
 * traced already; REFUSAL_NOT_PERMITTED: a process may not be traced, or the tree includes the
 * caller; REFUSAL_NO_SUCH_PROCESS. After a refusal all are detached. */
int seize_begin(int pidfd, const SeizeRule *rule, uint64_t deadline_usec, Seize **ret,
                Refusal *why);

/* The processes and threads that stand, in no particular order. While they do, their numbers are
 * not reused, even if one is killed. The caller frees both arrays. -ENOMEM. */
int seize_list(const Seize *s, ProcessFacts **ret_processes, size_t *ret_n_processes,
               SeizedThread **ret_threads, size_t *ret_n_threads);

/* Detaches. Returns NULL. */
Seize *seize_end(Seize *s);
DEFINE_CLEANUP(Seize *, seize_end)
