/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lock files of other software. Their paths are the administrator's, or well known; what lies there
 * may be anybody's, so nothing is followed, waited for or believed.
 */

#include <sys/stat.h>

#include "core/refusal.h"

typedef enum LockFile {
        LOCK_FILE_OPEN = 0,
        LOCK_FILE_ABSENT,   /* there is no such file */
        LOCK_FILE_UNUSABLE, /* why->text says what is wrong with it */
} LockFile;

/* Opens the regular file at path, no symbolic link, with these flags of open(2) besides those that
 * keep it from doing anything. Any errno but ENOENT and ENOTDIR makes it unusable. */
LockFile lock_file_open(const char *path, int flags, int *ret_fd, struct stat *ret_st,
                        Refusal *why);

/* Whether it could only have been put there by root: to be asked before its owner is changed.
 * Nobody else may have put another name on it, nor be able to change a directory above it. */
bool lock_file_is_roots(const char *path, const struct stat *st);
