/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attr.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

uint32_t attr_kernel_size(void) {
        /* The last byte is set, so a kernel that does not know it must refuse. */
        union {
                struct perf_event_attr attr;
                unsigned char bytes[4096];
        } probe = { .attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(probe) } };
        int fd;

        probe.bytes[sizeof(probe) - 1] = 1;
        fd = (int) syscall(SYS_perf_event_open, &probe, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0) {
                close_fd(fd);
                return 0;
        }
        return errno == E2BIG ? probe.attr.size : 0;
}
