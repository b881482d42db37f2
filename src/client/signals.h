/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The signals that perfalloc gets: which it handles, which it forwards, and how its children get
 * back the state that perfalloc was started with.
 */

#include <signal.h>
#include <sys/signalfd.h>
#include <systemd/sd-event.h>

#include "core/util.h"

typedef struct Signals Signals;
typedef int (*SignalHandler)(void *userdata, const struct signalfd_siginfo *info);

struct Signals {
        sigset_t original;      /* blocked when perfalloc was started */
        struct sigaction pipe;  /* what SIGPIPE did then; here it is ignored */
        struct sigaction child; /* what SIGCHLD did then; here it is blocked */
        bool hup_ignored;       /* by nohup(1) */
        bool int_ignored;       /* by a shell without job control, for commands with & */
        int fd;
        sd_event_source *source;
        SignalHandler handler;
        void *userdata;
};

#define SIGNALS_NULL ((Signals){ .fd = -1 })

typedef enum SignalSet {
        SIGNALS_END, /* requests to end: SIGINT, SIGTERM, SIGHUP */
        SIGNALS_ALL, /* all that can be forwarded, and SIGCHLD */
} SignalSet;

/* Ignores SIGPIPE, and blocks SIGCHLD for its watchers. */
void signals_init(Signals *s);
void signals_done(Signals *s);

/* From now on handler is called for the signals of the set, instead of an earlier handler; others
 * of an earlier set do what they did at the start. Signals that perfalloc's caller ignored stay
 * ignored: SIGHUP always, SIGINT unless a process sent it. */
int signals_watch(Signals *s, sd_event *event, SignalSet set, SignalHandler handler,
                  void *userdata);

/* In a child before its exec: restores the state at the start. Async-signal-safe. */
void signals_restore(const Signals *s);

/* Whether a process sent it. The terminal's signals go to the whole process group anyway. */
bool signal_is_sent(const struct signalfd_siginfo *info);

/* Stops this process if the signal's default is to do so, until it is continued. */
void signal_stop_self(int signo);

/* Dies of the signal, without a core dump. */
_Noreturn void signal_die(int signo);
