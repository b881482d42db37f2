/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "spare.h"

#include <sys/resource.h>

#include "core/util.h"

int spare_check(int fd) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
            (rlim_t) fd < limit.rlim_cur - MIN(limit.rlim_cur / 8, (rlim_t) SPARE_DESCRIPTORS))
                return fd;
        close_fd(fd);
        return -EMFILE;
}
