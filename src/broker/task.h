/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The task whose system call waits for an answer: who it is, and what the call's arguments point
 * to. All is read by number: it is its own only if the call still waits afterwards
 * (listener_awaits()). As long as it waits the task changes nothing of itself: no credentials, no
 * namespace, no program.
 *
 * Needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
 */

#include <sys/types.h>

#include "core/attr-rules.h"

typedef struct TaskFacts TaskFacts;

/* Plain data: sent over a socket as it is. */
struct TaskFacts {
        pid_t tid;
        pid_t process;
        uid_t uid[3]; /* real, effective, saved */
        gid_t gid[3];
        uint64_t permitted; /* capabilities */
        bool no_new_privs;  /* no program that it executes gains privileges */
        /* The PID namespace is ours; and so is the user namespace, or the user has made it in
         * ours. */
        bool same_namespaces;
        uint64_t user_namespace; /* its inode; 0: ours */
};

/* -ESRCH: there is no such task (any more). */
int task_read(pid_t tid, TaskFacts *ret);

/* The process of a thread; 0: there is none of this number. */
pid_t task_process(pid_t tid);

/* A descriptor that holds the task's process. -errno. */
int task_hold(const TaskFacts *t, int *ret_pidfd);

/* A copy of the task's descriptor fd, taken from its table. -errno: what the call would have failed
 * with (-EBADF). */
int task_take_fd(const TaskFacts *t, int fd, int *ret);

/* Reads the attr at that address, once, as far as there is memory: the size in bytes. -EFAULT: not
 * even its member size can be read, or it ends before the size that it states. -ESRCH. */
ssize_t task_read_attr(pid_t tid, uint64_t address, unsigned char ret[static ATTR_SIZE_MAX]);

/* Writes the size that the kernel expects into the attr at that address, as long as the call
 * waits. */
void task_write_attr_size(pid_t tid, uint64_t address, uint32_t size, int listener, uint64_t id);
