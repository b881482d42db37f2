/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "signals.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static void set_of(SignalSet set, sigset_t *ret) {
        /* SIGTTIN and SIGTTOU do their default: they go to the whole process group. SIGPIPE is
         * ignored. A fault of this process kills it, blocked or not. */
        static const int never[] = { SIGTTIN, SIGTTOU, SIGPIPE, SIGKILL, SIGSTOP };

        if (set == SIGNALS_END) {
                sigemptyset(ret);
                sigaddset(ret, SIGINT);
                sigaddset(ret, SIGTERM);
                sigaddset(ret, SIGHUP);
                return;
        }
        sigfillset(ret);
        for (size_t i = 0; i < ELEMENTSOF(never); i++)
                sigdelset(ret, never[i]);
}

static bool is_ignored(int signo) {
        struct sigaction action = {};

        return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void signals_init(Signals *s) {
        const struct sigaction ignore = { .sa_handler = SIG_IGN };
        const struct sigaction normal = { .sa_handler = SIG_DFL };
        sigset_t child;

        *s = SIGNALS_NULL;
        s->hup_ignored = is_ignored(SIGHUP);
        s->int_ignored = is_ignored(SIGINT);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &child, &s->original);
        (void) sigaction(SIGPIPE, &ignore, &s->pipe);
        /* if it is ignored, children leave no status */
        (void) sigaction(SIGCHLD, &normal, &s->child);
}

void signals_done(Signals *s) {
        s->source = sd_event_source_disable_unref(s->source);
        s->fd = close_fd(s->fd);
}

bool signal_is_sent(const struct signalfd_siginfo *info) {
        return info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE ||
               info->ssi_code == SI_TKILL;
}

static int signals_read(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Signals *s = userdata;
        struct signalfd_siginfo info;
        ssize_t n = read(fd, &info, sizeof(info));

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n != sizeof(info))
                return -EIO;
        if (info.ssi_signo == SIGHUP && s->hup_ignored)
                return 0;
        if (info.ssi_signo == SIGINT && s->int_ignored && !signal_is_sent(&info))
                return 0;
        return s->handler(s->userdata, &info);
}

int signals_watch(Signals *s, sd_event *event, SignalSet set, SignalHandler handler,
                  void *userdata) {
        sigset_t wanted, blocked;
        int fd;

        s->handler = handler;
        s->userdata = userdata;
        set_of(set, &wanted);
        /* those of an earlier, larger set do what they did before */
        sigorset(&blocked, &s->original, &wanted);
        sigaddset(&blocked, SIGCHLD);
        if (sigprocmask(SIG_SETMASK, &blocked, NULL) < 0)
                return -errno;
        fd = signalfd(s->fd, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0)
                return -errno;
        s->fd = fd;
        if (s->source)
                return 0;
        return sd_event_add_io(event, &s->source, fd, EPOLLIN, signals_read, s);
}

void signals_restore(const Signals *s) {
        (void) sigaction(SIGPIPE, &s->pipe, NULL);
        (void) sigaction(SIGCHLD, &s->child, NULL);
        (void) sigprocmask(SIG_SETMASK, &s->original, NULL);
}

/* Handles one signal that is blocked. */
static void signal_take(int signo) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, signo);
        (void) raise(signo);
        (void) sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
}

void signal_stop_self(int signo) {
        signal_take(signo);
}

void signal_die(int signo) {
        const struct sigaction normal = { .sa_handler = SIG_DFL };
        const struct rlimit none = {};

        /* A limit of 0 does not keep a core_pattern with a pipe from getting one (core(5)). */
        (void) setrlimit(RLIMIT_CORE, &none);
        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) sigaction(signo, &normal, NULL);
        signal_take(signo);
        _exit(128 + signo);
}
