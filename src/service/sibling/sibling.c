/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sibling.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SOCKET_FD 3

static pid_t forked[SIBLINGS_MAX];
static size_t n_forked;

/* Blocks signals until the child has settled how to handle them. */
static pid_t process_fork(SiblingRun run, int socket) {
        pid_t parent = getpid(), pid;
        sigset_t all, before;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &before);
        pid = fork();
        if (pid == 0) {
                run(socket, parent);
                _exit(EXIT_FAILURE);
        }
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        return pid;
}

int sibling_fork(SiblingRun run, pid_t *ret_pid, int *ret_socket) {
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid = process_fork(run, pair[1]);
        close_fd(pair[1]);
        if (pid < 0) {
                close_fd(pair[0]);
                return -errno;
        }
        if (n_forked < SIBLINGS_MAX)
                forked[n_forked++] = pid;
        *ret_pid = pid;
        *ret_socket = pair[0];
        return 0;
}

size_t sibling_elders(pid_t ret[SIBLINGS_MAX]) {
        for (size_t i = 0; i < n_forked; i++)
                ret[i] = forked[i];
        return n_forked;
}

void sibling_end(pid_t pid) {
        for (size_t i = 0; i < n_forked; i++)
                if (forked[i] == pid)
                        forked[i--] = forked[--n_forked];
        if (pid > 0 && kill(pid, SIGKILL) >= 0)
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
}

static void signals_reset(void) {
        static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP };
        sigset_t set;

        for (int s = 1; s < NSIG; s++)
                (void) signal(s, SIG_DFL);
        for (size_t i = 0; i < ELEMENTSOF(ignored); i++)
                (void) signal(ignored[i], SIG_IGN);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_SETMASK, &set, NULL);
}

/* 0 to 2 become /dev/null, so that no file gets these numbers. */
int sibling_reset(int *socket) {
        int fd;

        if (*socket != SOCKET_FD && dup3(*socket, SOCKET_FD, O_CLOEXEC) < 0)
                return -errno;
        *socket = SOCKET_FD;
        if (close_range(SOCKET_FD + 1, UINT32_MAX, 0) < 0)
                return -errno;
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; fd >= 0 && i < SOCKET_FD; i++)
                if (dup2(fd, i) < 0)
                        return -errno;
        close_fd(fd);
        if (fd < 0)
                return -errno;
        signals_reset();
        return 0;
}

int sibling_die_with(pid_t parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        return getppid() == parent ? 0 : -ESRCH;
}

int sibling_confine(const char *name, int (*trim)(void), pid_t parent) {
        int r;

        (void) prctl(PR_SET_NAME, name); /* as perfallocd(8) calls it */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = trim();
        return r < 0 ? r : sibling_die_with(parent);
}
