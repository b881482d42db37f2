/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the siblings of the service, reader and opener, have in common: processes that are forked
 * from it before it reads anything, and end with it.
 */

#include <sys/types.h>

#include "core/util.h"

/* Runs in the child, and does not return; socket is its end. */
typedef void (*SiblingRun)(int socket, pid_t parent);

#define SIBLINGS_MAX 4u

/* Forks a process with one end of a SOCK_SEQPACKET pair; ret_socket is the other end. Call it
 * before any thread, bus or event loop exists. */
int sibling_fork(SiblingRun run, pid_t *ret_pid, int *ret_socket);

/* Kills and reaps it. */
void sibling_end(pid_t pid);

/* ---- in the child ---- */

/* The siblings that were forked before this one; returns how many. */
size_t sibling_elders(pid_t ret[SIBLINGS_MAX]);

/* Closes all descriptors but the socket, which changes its number, and resets signals: those of the
 * service manager and of a terminal are ignored, as the service decides and may need answers until
 * its end; only SIGCHLD stays blocked. */
int sibling_reset(int *socket);

/* Gives the process its name, and the capabilities that trim leaves; it ends with its parent. */
int sibling_confine(const char *name, int (*trim)(void), pid_t parent);

/* Ends this process with its parent. Call it after credentials have changed, which undoes it. */
int sibling_die_with(pid_t parent);
