/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stops a process and all its living descendants for a moment (ptrace(2): SEIZE and INTERRUPT), so
 * that events can be opened on every thread while nobody is born. A target sees no more of it than
 * a system call that fails with EINTR where the kernel cannot restart it (signal(7)).
 *
 * A descendant is who is reached from the root from parent to child; whose parent has ended has
 * left the tree. A parent inside vfork(2) cannot be stopped and need not be: it stands as long as
 * its child does.
 *
 * Only for a process that does nothing else, has no other children, blocks SIGCHLD and ends soon
 * after: threads that could not be stopped (such parents) are let go by its end. Its sudden death
 * lets everybody go, too.
 */

#include "perf/process/process.h"

typedef struct Seize Seize;
typedef struct SeizeRule SeizeRule;
typedef struct SeizedThread SeizedThread;

/* For whom: everybody who is stopped passes the trace rule, before he is stopped and again
 * afterwards. */
struct SeizeRule {
        bool any;  /* no rule: the client may count processes that it may not trace */
        uid_t uid; /* the client's, with any as well */
        const gid_t *gids;
        size_t n_gids;
        pid_t family; /* whose children let go soon when they trace somebody, as we do; 0: nobody's
                       */
};

/* Plain data: it travels over a socket as it is. */
struct SeizedThread {
        pid_t tid;
        pid_t pid;
};

/* Stops the tree below the process behind pidfd, until looking again finds nobody new.
 * deadline_usec is CLOCK_MONOTONIC. REFUSAL_BUSY when the tree does not stand by then or when
 * somebody traces one of its threads already; REFUSAL_NOT_PERMITTED when somebody in it may not be
 * traced, or the tree has us in it; REFUSAL_NO_SUCH_PROCESS. After a refusal everybody has been let
 * go. */
int seize_begin(int pidfd, const SeizeRule *rule, uint64_t deadline_usec, Seize **ret,
                Refusal *why);

/* Who stands, processes and threads, in no order that matters. While they stand no number becomes
 * somebody else's, even if one is killed. The caller frees both arrays. -ENOMEM. */
int seize_list(const Seize *s, ProcessFacts **ret_processes, size_t *ret_n_processes,
               SeizedThread **ret_threads, size_t *ret_n_threads);

/* Lets go. Returns NULL. */
Seize *seize_end(Seize *s);
DEFINE_CLEANUP(Seize *, seize_end)
