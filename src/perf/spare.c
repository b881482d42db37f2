/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "spare.h"

#include <sys/resource.h>

#include "core/util.h"

uint64_t spare_first(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
                return UINT64_MAX;
        return limit.rlim_cur - MIN(limit.rlim_cur / 8, (rlim_t) SPARE_DESCRIPTORS);
}

int spare_check(int fd) {
        if ((uint64_t) fd < spare_first())
                return fd;
        close_fd(fd);
        return -EMFILE;
}
