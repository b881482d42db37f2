/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seize-attach.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <time.h>

#define ATTACH_LATE SIGRTMIN

static struct {
        void (*collect)(void *userdata);
        void *userdata;
        sigset_t signals;
        sigjmp_buf late;
} attach;

static void on_child(int signo) {
        attach.collect(attach.userdata);
}

/* The kernel begins the call anew after any handler that returns. */
static void on_deadline(int signo) {
        siglongjmp(attach.late, 1);
}

static int handle(int signo, void (*handler)(int signo)) {
        struct sigaction a = { .sa_handler = handler };

        a.sa_mask = attach.signals;
        return sigaction(signo, &a, NULL) < 0 ? -errno : 0;
}

static int timer_arm(uint64_t deadline_usec) {
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = ATTACH_LATE };
        const struct itimerspec t = {
                .it_value = { .tv_sec = (time_t) (deadline_usec / USEC_PER_SEC),
                              .tv_nsec = (long) (deadline_usec % USEC_PER_SEC * NSEC_PER_USEC) },
        };
        timer_t timer;

        if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
            timer_settime(timer, TIMER_ABSTIME, &t, NULL) < 0)
                return -errno;
        return 0;
}

int seize_attach_init(uint64_t deadline_usec, void (*collect)(void *userdata), void *userdata) {
        int r;

        attach.collect = collect;
        attach.userdata = userdata;
        (void) sigemptyset(&attach.signals);
        (void) sigaddset(&attach.signals, SIGCHLD);
        (void) sigaddset(&attach.signals, ATTACH_LATE);
        (void) sigprocmask(SIG_BLOCK, &attach.signals, NULL);
        r = handle(SIGCHLD, on_child);
        if (r == 0)
                r = handle(ATTACH_LATE, on_deadline);
        return r == 0 ? timer_arm(deadline_usec) : r;
}

int seize_attach(pid_t tid, unsigned options) {
        int r;

        if (sigsetjmp(attach.late, 0) != 0)
                r = -ETIMEDOUT;
        else {
                (void) sigprocmask(SIG_UNBLOCK, &attach.signals, NULL);
                r = ptrace(PTRACE_SEIZE, tid, NULL, options) < 0 ? -errno : 0;
        }
        (void) sigprocmask(SIG_BLOCK, &attach.signals, NULL);
        return r;
}
