/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

int ctl_process_open(uint32_t pid, CtlProcess *ret, Refusal *why) {
        char path[sizeof("/proc/4294967295/maps")];
        int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);

        if (pidfd < 0 && errno == ESRCH)
                return refuse(why, CTL_E_UNKNOWN, "there is no process %" PRIu32, pid);
        if (pidfd < 0)
                return refuse(why, CTL_E_USAGE, "pid %" PRIu32 " cannot be used (%s)", pid,
                              strerror(errno));
        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
        *ret = (CtlProcess){ .pidfd = pidfd, .procfd = open(path, O_RDONLY | O_CLOEXEC) };
        return 0;
}

void ctl_process_done(CtlProcess *p) {
        p->pidfd = close_fd(p->pidfd);
        p->procfd = close_fd(p->procfd);
}

int ctl_process_append(const CtlProcess *p, sd_bus_message *m) {
        int r = sd_bus_message_append(m, "{sv}", "pidfd", "h", p->pidfd);

        if (r >= 0 && p->procfd >= 0)
                r = sd_bus_message_append(m, "{sv}", "procfd", "h", p->procfd);
        return r;
}
