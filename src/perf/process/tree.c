/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "perf/process/procfs.h"

#define DEPTH_MAX 4096 /* while parents end, /proc may show a circle */

pid_t tree_parent(pid_t pid) {
        _cleanup_free_ char *text = NULL;
        const char *fields;
        int parent;

        if (procfs_read(pid, "stat", &text, NULL) < 0)
                return 0;
        fields = procfs_stat(text, NULL);
        return fields && sscanf(fields, "%*c %d", &parent) == 1 ? parent : 0;
}

bool tree_has_children(pid_t pid, const Threads *threads) {
        for (size_t i = 0; i < threads->n_tids; i++) {
                _cleanup_free_ char *text = NULL;
                char name[sizeof("task/-2147483648/children")];
                int r;

                (void) snprintf(name, sizeof(name), "task/%d/children", (int) threads->tids[i]);
                r = procfs_read(pid, name, &text, NULL);
                /* r < 0 also on a kernel without these files (CONFIG_PROC_CHILDREN) */
                if (r < 0 || *text)
                        return true;
        }
        return false;
}

bool tree_descends(pid_t pid, bool (*is_it)(const void *userdata, pid_t pid),
                   const void *userdata) {
        for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
                pid_t parent = tree_parent(pid), grandparent;

                if (parent <= 0)
                        return false;
                if (is_it(userdata, parent))
                        return true;
                grandparent = tree_parent(parent);
                /* the parent may have ended meanwhile, and its number be reused */
                if (tree_parent(pid) != parent)
                        continue;
                if (grandparent <= 0)
                        return false;
                pid = parent;
        }
        return false;
}

pid_t tree_last_born(void) {
        _cleanup_close_ int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
        char text[128];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        const char *last;

        if (n <= 0)
                return 0;
        text[n] = '\0';
        last = strrchr(text, ' ');
        return last ? atoi(last) : 0;
}
