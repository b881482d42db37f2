/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared-fd.h"

SharedFd *shared_fd_new(int fd) {
        SharedFd *s = malloc(sizeof(SharedFd));

        if (s)
                *s = (SharedFd){ .n_refs = 1, .fd = fd };
        else
                close_fd(fd);
        return s;
}

SharedFd *shared_fd_ref(SharedFd *s) {
        s->n_refs++;
        return s;
}

SharedFd *shared_fd_unref(SharedFd *s) {
        if (s && --s->n_refs == 0) {
                close_fd(s->fd);
                free(s);
        }
        return NULL;
}
