/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * To be preloaded by slurmd: /proc/PID/cgroup has cgroups of version 2 alone, and process 1 is in
 * the root of slurmd's cgroup namespace.
 *
 * Slurm's cgroup/v2 ends on machines that have hierarchies of version 1, too, even if it is given a
 * cgroup2 for itself. Up to Slurm 22.05 it looks at itself, later at process 1, below whose cgroup
 * it makes its own.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int real_open(const char *path, int flags, mode_t mode) {
        static int (*next)(const char *path, int flags, ...);

        if (!next)
                next = (int (*)(const char *, int, ...)) dlsym(RTLD_NEXT, "open64");
        return next(path, flags, mode);
}

static bool is_cgroup_of_process(const char *path) {
        int end = 0;

        (void) sscanf(path, "/proc/%*[^/]/cgroup%n", &end);
        return end > 0 && path[end] == 0;
}

/* The line of cgroups(7) that starts with "0::". */
static int open_filtered(const char *path) {
        bool first = strcmp(path, "/proc/1/cgroup") == 0;
        int real = real_open(path, O_RDONLY | O_CLOEXEC, 0);
        int fd = memfd_create("cgroup", MFD_CLOEXEC);
        FILE *f = real < 0 ? NULL : fdopen(real, "re");
        char line[4096];

        while (f && fd >= 0 && fgets(line, sizeof(line), f))
                if (strncmp(line, "0::", 3) == 0)
                        (void) dprintf(fd, "%s", first ? "0::/\n" : line);
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
        return is_cgroup_of_process(path) ? open_filtered(path) : real_open(path, flags, mode);
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));
