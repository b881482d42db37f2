/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "thread.h"

#include <fcntl.h>
#include <stdio.h>

#include "perf/process/process.h"
#include "perf/process/procfs.h"

/* The process of the thread with that directory; -ESRCH: it has ended. */
static pid_t directory_process(int directory) {
        char text[512]; /* Tgid is one of the first lines */
        _cleanup_close_ int fd = openat(directory, "status", O_RDONLY | O_CLOEXEC);
        const char *field;
        ssize_t n;

        n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
        if (n < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        text[n] = '\0';
        field = procfs_field(text, "Tgid");
        return field ? (pid_t) strtol(field, NULL, 10) : -ESRCH;
}

static int refuse_ended(pid_t tid, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "there is no process or thread %d (any more)",
                      (int) tid);
}

/* Any but the first thread of a process; else refuses tid. */
static int thread_hold_other(pid_t tid, Thread *ret, Refusal *why) {
        _cleanup_(thread_release) Thread t = THREAD_NULL;
        char path[sizeof("/proc/-2147483648")];
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d", (int) tid);
        t.directory = tid > 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (t.directory < 0 && tid > 0) {
                r = errno == ENOENT || errno == EPERM ? procfs_explain_hidden(tid, why)
                    : errno == ESRCH                  ? 0
                                                      : -errno;
                if (r != 0)
                        return r;
        }
        t.tid = tid;
        t.pid = t.directory >= 0 ? directory_process(t.directory) : -ESRCH;
        if (t.pid < 0 && t.pid != -ESRCH)
                return t.pid;
        if (t.pid <= 0) {
                r = process_open(tid, &t.pidfd, why); /* says what is wrong with the number */
                return r != 0 ? r : refuse_ended(tid, why);
        }
        r = process_open(t.pid, &t.pidfd, why);
        if (r != 0)
                return r;
        r = thread_check(&t);
        if (r < 0)
                return r == -ESRCH ? refuse_ended(tid, why) : r;
        *ret = t;
        t = THREAD_NULL;
        return 0;
}

int thread_hold(pid_t tid, Thread *ret, Refusal *why) {
        int pidfd, r = process_open(tid, &pidfd, why);

        if (r < 0)
                return r;
        if (r > 0)
                return thread_hold_other(tid, ret, why);
        *ret = (Thread){ .tid = tid, .pid = tid, .pidfd = pidfd, .directory = -1 };
        return 0;
}

int thread_check(const Thread *t) {
        pid_t pid = t->directory >= 0 ? directory_process(t->directory) : t->pid;

        if (pid < 0)
                return pid;
        return pid == t->pid && process_exists(t->pidfd) ? 0 : -ESRCH;
}

void thread_release(Thread *t) {
        t->pidfd = close_fd(t->pidfd);
        t->directory = close_fd(t->directory);
}
