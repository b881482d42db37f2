/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STOP_MSEC 1000

static _Noreturn void agent_exec(int notify_fd, pid_t parent, const Signals *signals) {
        char number[16];

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
        signals_restore(signals);
        (void) fcntl(notify_fd, F_SETFD, 0);
        (void) snprintf(number, sizeof(number), "%d", notify_fd);
        execlp("pkttyagent", "pkttyagent", "--notify-fd", number, "--fallback", NULL);
        _exit(EXIT_FAILURE);
}

static int agent_is_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Agent *a = userdata;

        a->source = sd_event_source_disable_unref(a->source);
        a->ready = close_fd(a->ready);
        return a->done(a->userdata);
}

int agent_start(Agent *a, sd_event *event, const Signals *signals, AgentReady done,
                void *userdata) {
        _cleanup_close_ int notify_fd = -1;
        pid_t parent = getpid(), pid;
        int fds[2], r;

        if (geteuid() == 0 || !isatty(STDIN_FILENO))
                return 0;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        a->ready = fds[0];
        notify_fd = fds[1];
        a->done = done;
        a->userdata = userdata;
        r = sd_event_add_io(event, &a->source, a->ready, EPOLLIN, agent_is_ready, a);
        if (r < 0)
                return r;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                agent_exec(notify_fd, parent, signals);
        a->pid = pid;
        return 1;
}

/* pkttyagent turns the terminal's echo on again when SIGTERM ends it. */
static void agent_end(pid_t pid) {
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        (void) kill(pid, SIGTERM);
        (void) kill(pid, SIGCONT);
        if (pidfd < 0 || poll(&p, 1, STOP_MSEC) != 1)
                (void) kill(pid, SIGKILL);
        (void) TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
}

void agent_stop(Agent *a) {
        a->source = sd_event_source_disable_unref(a->source);
        a->ready = close_fd(a->ready);
        if (a->pid > 0)
                agent_end(a->pid);
        a->pid = 0;
}
