/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>

#include "client/say.h"

static _Noreturn void parent_wait(int report) {
        char byte;

        _exit(TEMP_FAILURE_RETRY(read(report, &byte, sizeof(byte))) == sizeof(byte) ? EXIT_SUCCESS
                                                                                    : EXIT_FAILURE);
}

int daemon_fork(int *ret_report) {
        _cleanup_close_ int report = -1, reporter = -1;
        pid_t parent = getpid(), pid;
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report = fds[0];
        reporter = fds[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid > 0) {
                reporter = close_fd(reporter);
                parent_wait(report);
        }
        report = close_fd(report);
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
                return -errno;
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
        /* A daemon must not keep the caller's locks and pipes open. Of a new pipe, the write end
         * has the higher number. */
        if (close_range(STDERR_FILENO + 1, (unsigned) reporter - 1, 0) < 0 ||
            close_range((unsigned) reporter + 1, UINT_MAX, 0) < 0)
                return -errno;
        *ret_report = TAKE_FD(reporter);
        return 0;
}

int daemon_detach(int report) {
        _cleanup_close_ int reporter = report, null = -1;

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0)
                return -errno;
        if (setsid() < 0 || chdir("/") < 0 || prctl(PR_SET_PDEATHSIG, 0) < 0)
                return -errno;
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (dup2(null, fd) < 0)
                        return -errno;
        say_to(SAY_TO_LOG);
        /* fails if the parent was killed meanwhile; its death has sent SIGTERM */
        if (write(reporter, "", 1) != 1)
                return -errno;
        return 0;
}
