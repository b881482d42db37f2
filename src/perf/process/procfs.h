/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text files of /proc (proc(5)). What they say was written by the kernel, but names in it were
 * chosen by the processes: they are shown only after procfs_clean().
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "core/refusal.h"

#define PROCFS_TEXT_MAX ((size_t) 1 << 20) /* a status file with 65,536 groups is below that */

/* Reads /proc/PID/NAME as a whole; the caller frees it. st, if not NULL, tells the file's owner as
 * it was when it was opened. A process that has ended is -ENOENT or -ESRCH, one that may not be
 * read -EACCES or -EPERM; a longer text is -EFBIG. */
int procfs_read(pid_t pid, const char *name, char **ret, struct stat *st);

/* REFUSAL_NOT_PERMITTED where the process or thread lives and /proc does not show it to us
 * (proc(5), hidepid=), with what to do about it; 0 where it does not live. */
int procfs_explain_hidden(pid_t pid, Refusal *why);

/* What follows "NAME:" and its tab on a line of its own; NULL when there is no such line. */
const char *procfs_field(const char *text, const char *name);

/* Copies a name of at most length bytes: printable ASCII, everything else becomes '?'; cut to size.
 */
void procfs_clean(char *ret, size_t size, const char *name, size_t length);

/* The fields of /proc/PID/stat from the state on, past the name and its parentheses; the name
 * itself goes to comm[16] unless that is NULL. NULL when this is no such text. */
const char *procfs_stat(const char *text, char *comm);
