/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fd-reserve.h"

#include <sys/resource.h>

#include "core/util.h"

uint64_t fd_reserve_first(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
                return UINT64_MAX;
        return limit.rlim_cur - MIN(limit.rlim_cur / 8, (rlim_t) FD_RESERVE);
}

int fd_reserve_check(int fd, uint64_t first) {
        if (fd < 0 || (uint64_t) fd < first)
                return fd;
        close_fd(fd);
        return -EMFILE;
}
