/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "streams.h"

#include <fcntl.h>

#include "core/util.h"

int streams_fill(void) {
        for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
                int fd;

                if (fcntl(stream, F_GETFD) >= 0)
                        continue;
                /* the lowest free one is this one */
                fd = open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
                if (fd < 0)
                        return -errno;
        }
        return 0;
}
