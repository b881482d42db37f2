/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* The process of a thread, as far as /proc shows it. */
static bool process_of(uint32_t tid, uint32_t *ret) {
        char path[sizeof("/proc/4294967295/status")], line[128];
        bool found = false;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", tid);
        f = fopen(path, "re");
        while (f && !found && fgets(line, sizeof(line), f))
                found = sscanf(line, "Tgid: %" SCNu32, ret) == 1;
        if (f)
                (void) fclose(f);
        return found;
}

/* Of a thread that is not its process's first one pidfd_open(2) says EINVAL, and ENOENT since Linux
 * 6.15. */
static int refuse_process(uint32_t pid, int error, Refusal *why) {
        uint32_t process = 0;

        if (error != ESRCH && error != EINVAL && error != ENOENT)
                return refuse(why, CTL_E_USAGE, "pid %" PRIu32 " cannot be used (%s)", pid,
                              strerror(error));
        if (error == ESRCH || !process_of(pid, &process) || process == pid)
                return refuse(why, CTL_E_UNKNOWN, "there is no process %" PRIu32, pid);
        return refuse(why, CTL_E_UNKNOWN,
                      "%" PRIu32 " is a thread of process %" PRIu32 ", and not a process", pid,
                      process);
}

int ctl_process_open(uint32_t pid, CtlProcess *ret, Refusal *why) {
        char path[sizeof("/proc/4294967295/maps")];
        int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);

        if (pidfd < 0)
                return refuse_process(pid, errno, why);
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
