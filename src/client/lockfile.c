/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lockfile.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct flock first_byte(void) {
        return (struct flock){ .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
}

static int refuse_open(const char *path, int error, Refusal *why) {
        return refuse(why,
                      error == EACCES || error == EPERM ? REFUSAL_NOT_PERMITTED
                                                        : REFUSAL_INVALID_ARGS,
                      "cannot open the lock file %s: %s", path, strerror(error));
}

static int refuse_locked(const char *path, int fd, Refusal *why) {
        struct flock other = first_byte();

        if (fcntl(fd, F_GETLK, &other) < 0 || other.l_type == F_UNLCK || other.l_pid <= 0)
                return refuse(why, REFUSAL_BUSY,
                              "the lock file %s is locked for writing by a process that cannot be "
                              "seen from here",
                              path);
        return refuse(why, REFUSAL_BUSY, "the lock file %s is locked for writing by pid %d", path,
                      (int) other.l_pid);
}

int lockfile_take(const char *path, int *ret_fd, Refusal *why) {
        _cleanup_close_ int fd = -1;
        struct flock lock = first_byte();
        struct stat st;

        /* O_NONBLOCK: a FIFO would wait for its writer */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return refuse_open(path, errno, why);
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "the lock file %s is not a regular file; a lock on it has no effect",
                              path);
        if (fcntl(fd, F_SETLK, &lock) < 0) {
                if (errno == EACCES || errno == EAGAIN)
                        return refuse_locked(path, fd, why);
                return refuse(why, REFUSAL_INVALID_ARGS, "cannot lock %s: %s", path,
                              strerror(errno));
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}
