/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What must be known of a process before a client may count it, and the rule itself.
 *
 * Reading it needs CAP_SYS_PTRACE (namespaces), so the reader does it (service/sibling/reader.h). A
 * pidfd holds the process: facts are read by number, and are its own only if the pidfd is still
 * valid afterwards.
 */

#include <sys/types.h>

#include "core/refusal.h"

typedef struct ProcessFacts ProcessFacts;

/* Plain data: sent over a socket as it is. */
struct ProcessFacts {
        pid_t pid;
        uid_t uid[3]; /* real, effective, saved */
        gid_t gid[3];
        bool uniform;  /* all its threads have these ids, which the kernel does not require; those
                        * that have ended do not matter */
        bool dumpable; /* files in /proc/PID belong to its effective uid, and that is not root: root
                        * owns those of processes that are not dumpable (proc(5)) */
        bool same_pid_ns; /* as the reader; false also: it cannot be read */
        bool same_user_ns;
        bool kernel_thread;
        bool zombie;        /* all its threads have ended */
        pid_t tracer;       /* of any of its threads; 0: none */
        uint64_t permitted; /* capabilities, any of its threads */
        char comm[16];      /* printable ASCII */
};

/* Reads the facts of the process that pidfd holds, in time proportional to its threads, and never
 * waits for the process. REFUSAL_NO_SUCH_PROCESS: it has ended (a zombie has facts);
 * REFUSAL_NOT_PERMITTED: /proc hides it; and refusals of process_from_pidfd(). */
int process_read(int pidfd, ProcessFacts *ret, Refusal *why);

/* The same; -E2BIG: it has more than threads_max threads. */
int process_read_up_to(int pidfd, size_t threads_max, ProcessFacts *ret, Refusal *why);

/* pidfd_open(2). REFUSAL_INVALID_PROCESS: pid is impossible or that of a thread;
 * REFUSAL_NO_SUCH_PROCESS. */
int process_open(pid_t pid, int *ret_pidfd, Refusal *why);

/* The number of a pidfd that a client passed. REFUSAL_BAD_DESCRIPTOR: it is no pidfd;
 * REFUSAL_INVALID_PROCESS: it holds a thread (PIDFD_THREAD); NO_SUCH_PROCESS: the process has ended
 * or is outside the caller's PID namespace. */
int process_from_pidfd(int pidfd, pid_t *ret, Refusal *why);

/* 1: numbers mean the same processes to it as to us, for it is in our PID namespace; 0: they do
 * not, or it has ended. Needs no capability. -EMFILE and the like. */
int process_numbers_like_us(int pidfd);

/* How many PID namespaces it has numbers in, from ours down to its own; 0: it is not below ours, or
 * has ended. Needs no capability. -EMFILE and the like. */
int process_depth(int pidfd);

/* Its number in the namespace of that depth, at least 1; 0: it has none, or has ended. */
int process_number_at(int pidfd, unsigned depth, pid_t *ret);

/* 1: it is in our PID and user namespaces; 0: it is not, has ended, or may not be read. -ENOMEM and
 * others. */
int process_is_neighbour(int pidfd);

/* Whether the process behind pidfd still has its number: it lives or is a zombie. */
bool process_exists(int pidfd);

/* How many threads it has; 0: it has ended. */
size_t process_count_threads(pid_t pid);

/* Whether it is root as far as events are concerned: it runs as uid 0 and has CAP_PERFMON or
 * CAP_SYS_ADMIN in our user namespace. A uid 0 without, as in a container that shares the user
 * namespace, is refused by the kernel what root is given. Pure. */
bool process_is_root(const ProcessFacts *f);

/* The trace rule (ptrace(2), PTRACE_MODE_READ_FSCREDS, without its capability exceptions): uid and
 * one of gids equal all three of the target's, it is dumpable, in our namespaces, without
 * capabilities. Pure. NULL: it may be counted; else why not. */
const char *process_untraceable(const ProcessFacts *f, uid_t uid, const gid_t *gids, size_t n_gids);
