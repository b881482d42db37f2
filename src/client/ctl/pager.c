/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pager.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* LESSSECURE: a user who runs this with another user's rights must not get a shell with them. */
static _Noreturn void pager_exec(const char *command, int input, pid_t parent,
                                 const Signals *signals) {
        signals_restore(signals);
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent || dup2(input, STDIN_FILENO) < 0)
                _exit(EXIT_FAILURE);
        (void) setenv("LESS", "FRSXMK", 1);
        (void) setenv("LESSSECURE", "1", 1);
        if (command)
                execl("/bin/sh", "sh", "-c", command, NULL);
        else {
                execlp("less", "less", NULL);
                execlp("cat", "cat", NULL);
        }
        _exit(EXIT_FAILURE);
}

void pager_open(Pager *p, const Signals *signals) {
        const char *command = getenv("PAGER");
        pid_t parent = getpid();
        int fds[2];

        *p = PAGER_NULL;
        if (command && (!*command || strcmp(command, "cat") == 0))
                return;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return;
        p->pid = fork();
        if (p->pid == 0)
                pager_exec(command, fds[0], parent, signals);
        close_fd(fds[0]);
        if (p->pid > 0)
                (void) dup2(fds[1], STDOUT_FILENO);
        p->pid = MAX(p->pid, 0);
        close_fd(fds[1]);
}

void pager_close(Pager *p) {
        if (p->pid == 0)
                return;
        (void) fflush(stdout);
        (void) fclose(stdout);
        (void) TEMP_FAILURE_RETRY(waitpid(p->pid, NULL, 0));
        p->pid = 0;
}
