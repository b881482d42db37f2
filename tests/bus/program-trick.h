/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a program of program.h does, in its own process, where an ordinary call is not enough. All
 * return 0 or a descriptor, or -errno.
 */

#include "program.h"

long trick_open(const ProgramCall *c);
long trick_open_in_thread(const ProgramCall *c);
long trick_open_in_child(const ProgramCall *c); /* 0 if it could open it */

long trick_open_of_child(ProgramCall *c); /* likewise */

/* How many of n events have counted in the kernel, while a thread changes exclude_kernel. */
long trick_open_while_changing(ProgramCall *c, int n);

long trick_landlock(void);
long trick_open_in_namespaces(const ProgramCall *c);
long trick_call_i386(int number, const ProgramCall *c);

/* Do not return if they could execute it. */
long trick_open_and_exec(const ProgramCall *c, const char *path);
long trick_exec(const char *path);

/* Into a user namespace that has the one uid, and the gid of that number. */
void trick_map(unsigned id);

/* Into one that root has made, and that has all ids. */
void trick_map_as_root(void);

/* As execve(2) does for anybody but root. */
void trick_drop_capabilities(void);

/* Returns in a child, which is the first process there and ends with this one. */
void trick_enter_pid_namespace(void);
