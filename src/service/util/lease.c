/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lease.h"

#include <fcntl.h>
#include <stdio.h>

int lease_watch(sd_event *event, int ours, sd_event_source **ret_source,
                sd_event_io_handler_t closed, void *userdata) {
        /* only EPOLLHUP is of interest, and it is always reported (epoll_ctl(2)) */
        return sd_event_add_io(event, ret_source, ours, 0, closed, userdata);
}

int lease_new(sd_event *event, int *ret_ours, sd_event_source **ret_source,
              sd_event_io_handler_t closed, void *userdata, int *ret_theirs) {
        _cleanup_close_ int ours = -1, theirs = -1;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        r = lease_watch(event, ours, ret_source, closed, userdata);
        if (r < 0)
                return r;
        *ret_ours = TAKE_FD(ours);
        *ret_theirs = TAKE_FD(theirs);
        return 0;
}

int lease_copy(int ours, int *ret_theirs) {
        char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

        /* either end of a pipe opens both (proc(5)) */
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", ours);
        *ret_theirs = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return *ret_theirs < 0 ? -errno : 0;
}
