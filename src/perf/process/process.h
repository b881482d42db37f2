/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What must be known of a process before a client may count it, and the rule itself.
 *
 * Reading it needs CAP_SYS_PTRACE (namespaces) and is done in a helper process; see
 * service/sibling/reader.h. A process is held by pidfd: facts are read by number and are only true
 * if the pidfd still answers afterwards.
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct ProcessFacts ProcessFacts;

struct ProcessFacts {
        pid_t pid;
        uid_t uid[3]; /* real, effective, saved */
        gid_t gid[3];
        bool uniform;  /* all its threads have these ids: the kernel lets each have its own */
        bool dumpable; /* files in /proc/PID belong to its effective uid, and that is not root: what
                        * is not dumpable belongs to root as well (proc(5)) */
        bool same_pid_ns; /* as the reader; false also where that cannot be read */
        bool same_user_ns;
        bool kernel_thread;
        bool zombie;        /* no thread of it lives */
        pid_t tracer;       /* of any of its threads; 0: nobody */
        uint64_t permitted; /* capabilities, any of its threads */
        char comm[16];      /* printable ASCII */
};

/* Plain data: it travels over a socket as it is. */

/* Reads the facts of the process that pidfd holds; takes time in proportion to its threads, and
 * never waits for the process. REFUSAL_NO_SUCH_PROCESS when it has ended (a zombie has facts),
 * REFUSAL_NOT_PERMITTED where /proc hides it from the reader, and what process_from_pidfd()
 * refuses. */
int process_read(int pidfd, ProcessFacts *ret, Refusal *why);

/* The same; -E2BIG when it has more threads than that. */
int process_read_up_to(int pidfd, size_t threads_max, ProcessFacts *ret, Refusal *why);

/* What anybody may see of the process that pidfd holds and that has this number, at a glance. Its
 * user namespace is taken to be ours, and the threads of one that has several are taken to differ.
 * So what is traceable by these facts very likely is, but has to be read still, and what is not may
 * be all the same. Needs no capability; refuses what process_read() refuses. */
int process_glance(int pidfd, pid_t pid, ProcessFacts *ret, Refusal *why);

/* pidfd_open(2). REFUSAL_INVALID_PROCESS for 0, negative and impossible numbers and for a thread
 * that is no process, REFUSAL_NO_SUCH_PROCESS for one that does not exist. */
int process_open(pid_t pid, int *ret_pidfd, Refusal *why);

/* The number behind a pidfd that a client passed: REFUSAL_BAD_DESCRIPTOR when it is no pidfd,
 * REFUSAL_INVALID_PROCESS when it holds a thread (PIDFD_THREAD), NO_SUCH_PROCESS when the process
 * has ended or lives outside of our pid namespace. */
int process_from_pidfd(int pidfd, pid_t *ret, Refusal *why);

/* Whether the process behind pidfd is still to be found under its number: it lives or is a zombie.
 */
bool process_exists(int pidfd);

/* How many threads it has, 0 when it has ended. */
size_t process_count_threads(pid_t pid);

/* The trace rule (ptrace(2), PTRACE_MODE_READ_FSCREDS, without its capability exceptions): uid and
 * one of gids equal all three of the target's, it is dumpable, in our namespaces, without
 * capabilities. Pure. Returns NULL when it may be counted, else in words what is in the way. */
const char *process_untraceable(const ProcessFacts *f, uid_t uid, const gid_t *gids, size_t n_gids);
