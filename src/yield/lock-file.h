/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lock files of other software. Their paths are configured or well known, but any user may have put
 * something there, so nothing is followed, waited for or trusted.
 */

#include <sys/stat.h>

#include "core/refusal.h"

typedef enum LockFile {
        LOCK_FILE_OPEN = 0,
        LOCK_FILE_ABSENT,   /* there is no such file */
        LOCK_FILE_UNUSABLE, /* why->text tells what is wrong with it */
} LockFile;

/* Opens the regular file at path, with these flags of open(2) and those that avoid side effects.
 * Any errno but ENOENT and ENOTDIR makes it unusable. */
LockFile lock_file_open(const char *path, int flags, int *ret_fd, struct stat *ret_st,
                        Refusal *why);

/* Whether only root can have put it there, which is checked before its owner is changed: it has no
 * other link, and only root can change the directories above it. */
bool lock_file_is_roots(const char *path, const struct stat *st);
