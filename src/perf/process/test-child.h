/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A child process for tests: it runs a function, reports that it is ready, and waits for its end.
 * It ends with the test.
 */

#include <glib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/util.h"

/* Makes this process end with its parent, even if that has ended already. To be called after a
 * change of credentials, which cancels it (prctl(2)). */
static inline void child_end_with(pid_t parent) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* 0: the parent is outside of a new PID namespace */
        if (getppid() != parent && getppid() != 0)
                _exit(1);
}

/* fork(2) within a child; true in the new process. */
static inline bool child_fork(void) {
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
                _exit(1);
        if (pid == 0)
                child_end_with(parent);
        return pid == 0;
}

/* Starts a child that runs setup(userdata) and then sleeps. Returns when setup has returned. */
static inline pid_t child_start(void (*setup)(void *userdata), void *userdata) {
        pid_t parent = getpid(), pid;
        int ready[2];
        char byte;

        g_assert_cmpint(pipe(ready), ==, 0);
        pid = fork();
        g_assert_cmpint(pid, >=, 0);
        if (pid == 0) {
                close(ready[0]);
                if (setup)
                        setup(userdata);
                child_end_with(parent);
                if (write(ready[1], "", 1) != 1)
                        _exit(1);
                close(ready[1]);
                for (;;)
                        pause();
        }
        close(ready[1]);
        g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
        close(ready[0]);
        return pid;
}

static inline void child_end(pid_t pid) {
        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}
