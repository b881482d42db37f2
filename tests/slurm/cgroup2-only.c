/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * To be preloaded by slurmd: what a process reads of its own cgroups has those of version 2 alone.
 *
 * Slurm's cgroup/v2 ends on machines that have hierarchies of version 1, too, even if it is given a
 * cgroup2 for itself.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SELF "/proc/self/cgroup"

static int real_open(const char *path, int flags, mode_t mode) {
        static int (*next)(const char *path, int flags, ...);

        if (!next)
                next = (int (*)(const char *, int, ...)) dlsym(RTLD_NEXT, "open64");
        return next(path, flags, mode);
}

/* The line of cgroups(7) that starts with "0::". */
static int open_filtered(void) {
        int real = real_open(SELF, O_RDONLY | O_CLOEXEC, 0);
        int fd = memfd_create("cgroup", MFD_CLOEXEC);
        FILE *f = real < 0 ? NULL : fdopen(real, "re");
        char line[4096];

        while (f && fd >= 0 && fgets(line, sizeof(line), f))
                if (strncmp(line, "0::", 3) == 0)
                        (void) !write(fd, line, strlen(line));
        if (f)
                (void) fclose(f);
        (void) lseek(fd, 0, SEEK_SET);
        return fd;
}

#pragma GCC visibility push(default)

int open64(const char *path, int flags, ...) {
        va_list arguments;
        mode_t mode;

        va_start(arguments, flags);
        mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
        va_end(arguments);
        return strcmp(path, SELF) == 0 ? open_filtered() : real_open(path, flags, mode);
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));
