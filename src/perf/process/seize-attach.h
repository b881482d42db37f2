/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PTRACE_SEIZE without hanging.
 *
 * It waits while a thread of the same process execs (cred_guard_mutex). The exec waits until its
 * sibling threads are gone, and a sibling that is traced stays as a zombie until its tracer, who
 * waits here, has reaped it (de_thread() in fs/exec.c). So SIGCHLD is handled meanwhile. What else
 * the exec may wait for, such as the file system of the program, can take for ever: the wait ends
 * at a deadline.
 */

#include <sys/types.h>

#include "core/util.h"

/* For all of a process that does nothing else. From now on SIGCHLD and SIGRTMIN are blocked, except
 * during seize_attach(), which calls collect() for SIGCHLD: in a signal handler, but while nothing
 * but that system call is under way. deadline_usec is CLOCK_MONOTONIC. */
int seize_attach_init(uint64_t deadline_usec, void (*collect)(void *userdata), void *userdata);

/* 0, or -errno of ptrace(2); -ETIMEDOUT: the deadline is over, and the thread may be seized. */
int seize_attach(pid_t tid, unsigned options);
