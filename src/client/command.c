/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "command.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client/paranoid-view.h"
#include "core/fd-message.h"

typedef struct Report {
        int filter, view; /* 0 or a negative errno */
} Report;

/* Whether a shell waits for this job, which has the terminal. */
static bool has_terminal(void) {
        _cleanup_close_ int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

        return fd >= 0 && tcgetpgrp(fd) == getpgrp();
}

/* COMMAND has stopped by itself: the shell waits for perfalloc, so that stops too. Whoever
 * continues one means both. Without a shell nobody would continue perfalloc. */
static void command_follow_stop(const Command *c) {
        if (!has_terminal())
                return;
        (void) raise(SIGSTOP);
        (void) kill(c->pid, SIGCONT);
}

static void command_reap(Command *c) {
        siginfo_t info = {};

        if (waitid(P_PID, (id_t) c->pid, &info, WEXITED | WSTOPPED | WNOHANG) < 0 ||
            info.si_pid == 0)
                return;
        if (info.si_code == CLD_STOPPED) {
                command_follow_stop(c);
                return;
        }
        c->ended = true;
        if (info.si_code == CLD_EXITED)
                c->status = info.si_status;
        else
                c->signo = info.si_status;
}

/*
 * COMMAND is in the same process group, so it gets the terminal's signals (^C, ^Z, hang-up) itself.
 * Only signals that a process has sent to perfalloc are forwarded. A shell's fg continues the whole
 * group by kill(2): COMMAND is then continued twice, which has no further effect.
 */
static int command_signal(void *userdata, const struct signalfd_siginfo *info) {
        Command *c = userdata;
        int signo = (int) info->ssi_signo;

        if (c->ended)
                return 0;
        if (signo == SIGCHLD) {
                command_reap(c);
                return 0;
        }
        if (signal_is_sent(info))
                (void) kill(c->pid, signo);
        /* The shell has to see that the job is stopped. */
        if (signo == SIGTSTP)
                signal_stop_self(signo);
        return 0;
}

/* execvp(3) also returns EACCES when a directory in PATH cannot be searched and no other has the
 * name. */
static bool path_has(const char *name) {
        const char *path = getenv("PATH"), *end;
        char file[PATH_MAX];

        if (!path || strchr(name, '/'))
                return true;
        for (;; path = end + 1) {
                end = strchrnul(path, ':');
                if (snprintf(file, sizeof(file), "%.*s%s%s", (int) (end - path), path,
                             end > path ? "/" : "", name) < (int) sizeof(file) &&
                    access(file, F_OK) == 0)
                        return true;
                if (!*end)
                        return false;
        }
}

/* Nothing is run if the parent has ended, or has closed the gate. */
static void gate_wait(int gate) {
        char byte;

        if (TEMP_FAILURE_RETRY(read(gate, &byte, sizeof(byte))) != sizeof(byte))
                _exit(COMMAND_CANNOT_RUN);
}

/* The view first: the filter sets no_new_privs. COMMAND must not have the listener, or calls would
 * be answered by nobody once the service has ended. */
static void setting_apply(const CommandSetting *setting, int report) {
        Report r = {};
        int listener = -1;

        if (setting->paranoid)
                r.view = paranoid_view_enter(setting->paranoid);
        if (setting->filter)
                listener = filter_install(setting->filter);
        r.filter = MIN(listener, 0);
        if (fd_message_send(report, &r, sizeof(r), &listener, listener >= 0, 0) < 0)
                _exit(COMMAND_CANNOT_RUN);
        close_fd(listener);
}

static _Noreturn void command_exec(char **argv, int gate, int report, const CommandSetting *setting,
                                   const Signals *signals) {
        int error;

        signals_restore(signals);
        if (setting)
                setting_apply(setting, report);
        gate_wait(gate);
        execvp(argv[0], argv);
        error = errno == EACCES && !path_has(argv[0]) ? ENOENT : errno;
        /* the parent takes a closed pipe for success, so this must be written */
        (void) TEMP_FAILURE_RETRY(write(report, &error, sizeof(error)));
        _exit(COMMAND_CANNOT_RUN);
}

/* The errno of a failed exec, 0 when the exec has closed the pipe. */
static int report_read(int fd) {
        int error = 0;

        return TEMP_FAILURE_RETRY(read(fd, &error, sizeof(error))) == sizeof(error) ? error : 0;
}

int command_prepare(Command *c, char **argv, const CommandSetting *setting,
                    const Signals *signals) {
        _cleanup_close_ int gate_end = -1, reporter = -1;
        int gate[2], report[2];

        *c = COMMAND_NULL;
        if (pipe2(gate, O_CLOEXEC) < 0)
                return -errno;
        gate_end = gate[0];
        c->gate = gate[1];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
                return -errno;
        c->report = report[0];
        reporter = report[1];
        c->pid = fork();
        if (c->pid < 0)
                return -errno;
        if (c->pid > 0)
                return 0;
        /* with a copy of its own, the gate would never close */
        c->gate = close_fd(c->gate);
        command_exec(argv, gate_end, reporter, setting, signals);
}

void command_take_setting(Command *c, int *ret_listener, int *ret_view) {
        Report report = { -ECHILD, -ECHILD };
        int listener = -1, how;
        size_t n_fds;
        ssize_t n;

        do
                n = fd_message_receive(c->report, &report, sizeof(report), &listener, 1, &n_fds, 0,
                                       &how);
        while (n == -EINTR);
        *ret_view = n < 0 ? (int) n : report.view;
        *ret_listener = n < 0               ? (int) n
                        : n_fds == 1        ? listener
                        : report.filter < 0 ? report.filter
                                            : -EMFILE;
}

static void command_wait(Command *c) {
        (void) TEMP_FAILURE_RETRY(waitpid(c->pid, NULL, 0));
        c->ended = true;
}

/* SIGPIPE is ignored: if the child was killed at the gate, SIGCHLD reports that. */
static int gate_open(Command *c) {
        if (TEMP_FAILURE_RETRY(write(c->gate, "", 1)) < 0 && errno != EPIPE)
                return -errno;
        c->gate = close_fd(c->gate);
        return 0;
}

int command_run(Command *c, sd_event *event, Signals *signals) {
        int r = signals_watch(signals, event, SIGNALS_ALL, command_signal, c);

        if (r >= 0)
                r = gate_open(c);
        if (r < 0)
                return r;
        r = report_read(c->report);
        c->report = close_fd(c->report);
        if (r == 0)
                return 0;
        command_wait(c);
        c->status = r == ENOENT ? COMMAND_NOT_FOUND : COMMAND_CANNOT_RUN;
        return r;
}

void command_done(Command *c) {
        bool waits = c->gate >= 0;

        c->gate = close_fd(c->gate);
        c->report = close_fd(c->report);
        if (waits && c->pid > 0 && !c->ended)
                command_wait(c);
}

int command_start(Command *c, char **argv, sd_event *event, Signals *signals) {
        int r = command_prepare(c, argv, NULL, signals);

        if (r >= 0)
                r = command_run(c, event, signals);
        command_done(c);
        return r;
}
