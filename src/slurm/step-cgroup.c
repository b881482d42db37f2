/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "step-cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 8192

char *step_cgroup_path(const char *text) {
        const char *line = strncmp(text, "0::/", 4) == 0 ? text - 1 : strstr(text, "\n0::/");
        const char *step, *path, *last = NULL;
        size_t n;

        if (!line)
                return NULL;
        path = line + strlen("\n0::");
        n = strcspn(path, "\n");
        for (step = path; (step = memmem(step, n - (size_t) (step - path), "/step_", 6)); step++)
                last = step;
        if (!last)
                return NULL;
        return strndup(path, (size_t) (last - path) + 1 + strcspn(last + 1, "/\n"));
}

int step_cgroup_open(void) {
        _cleanup_free_ char *path = NULL, *full = NULL;
        _cleanup_close_ int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
        char text[TEXT_MAX];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n < 0)
                return -1;
        text[n] = '\0';
        path = step_cgroup_path(text);
        if (!path || asprintf(&full, "/sys/fs/cgroup%s", path) < 0)
                return -1;
        return open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
