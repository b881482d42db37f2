/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lock-file.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

static LockFile unusable(const char *path, const char *what, Refusal *why) {
        (void) refuse(why, REFUSAL_INVALID_ARGS, "%s cannot be used as a lock file: %s", path,
                      what);
        return LOCK_FILE_UNUSABLE;
}

LockFile lock_file_open(const char *path, int flags, int *ret_fd, struct stat *ret_st,
                        Refusal *why) {
        _cleanup_close_ int fd = -1;

        /* O_NONBLOCK: FIFOs and devices would wait */
        fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return LOCK_FILE_ABSENT;
        if (fd < 0)
                return unusable(path, errno == ELOOP ? "it is a symbolic link" : strerror(errno),
                                why);
        if (fstat(fd, ret_st) < 0)
                return unusable(path, strerror(errno), why);
        if (!S_ISREG(ret_st->st_mode))
                return unusable(path,
                                S_ISLNK(ret_st->st_mode)   ? "it is a symbolic link"
                                : S_ISDIR(ret_st->st_mode) ? "it is a directory"
                                                           : "it is no regular file",
                                why);
        *ret_fd = TAKE_FD(fd);
        return LOCK_FILE_OPEN;
}

/* In a sticky directory users cannot remove or rename the files of others. */
static bool directory_is_roots(const char *path, bool sticky_will_do) {
        struct stat st;

        return stat(path, &st) == 0 && st.st_uid == 0 &&
               ((st.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
                ((st.st_mode & S_ISVTX) && sticky_will_do));
}

bool lock_file_is_roots(const char *path, const struct stat *st) {
        _cleanup_free_ char *copy = strdup(path), *directory = NULL;
        char *slash = copy ? strrchr(copy, '/') : NULL;

        if (!slash || st->st_nlink != 1)
                return false;
        *slash = '\0';
        directory = realpath(*copy ? copy : "/", NULL);
        if (!directory || !directory_is_roots(directory, st->st_uid == 0))
                return false;
        while ((slash = strrchr(directory, '/')) && slash != directory) {
                *slash = '\0';
                if (!directory_is_roots(directory, true))
                        return false;
        }
        return true;
}
