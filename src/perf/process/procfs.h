/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text files of /proc (proc(5)). The kernel writes them, but processes choose the names in them:
 * these are shown only after procfs_clean().
 */

#include <sys/stat.h>
#include <sys/types.h>

#include "core/refusal.h"

#define PROCFS_TEXT_MAX ((size_t) 1 << 20) /* a status file with 65,536 groups is shorter */

/* Reads the whole of /proc/PID/NAME; the caller frees it. st (may be NULL) tells the file's owner
 * at its opening. -ENOENT, -ESRCH: the process has ended; -EACCES, -EPERM: it may not be read;
 * -EFBIG: a longer text. */
int procfs_read(pid_t pid, const char *name, char **ret, struct stat *st);

/* Whether the /proc of process 1 hides users' processes from each other (proc(5), hidepid=): also
 * where process 1 itself is hidden from us. */
bool procfs_hides(void);

/* REFUSAL_NO_SUCH_PROCESS. Where /proc hides processes the words are the same for a process that
 * does not exist and one that the caller may not see. */
int procfs_refuse_unseen(pid_t pid, Refusal *why);

/* The same if /proc hides processes, else 0. */
int procfs_explain_hidden(pid_t pid, Refusal *why);

/* What follows "NAME:" and a tab at the start of a line; NULL: no such line. */
const char *procfs_field(const char *text, const char *name);

/* Copies a name of at most length bytes, cut to size; what is not printable ASCII becomes '?'. */
void procfs_clean(char *ret, size_t size, const char *name, size_t length);

/* The fields of /proc/PID/stat from the state on, behind the name, which goes to comm[16] unless
 * that is NULL. NULL: the text is malformed. */
const char *procfs_stat(const char *text, char *comm);
