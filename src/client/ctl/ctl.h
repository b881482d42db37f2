/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What all verbs of perfallocctl(1) have: their command line, the way to the service, and calls to
 * it.
 *
 * A function that can fail returns a negative errno for what nobody here can mend, or one of
 * CTL_E_* with the words in why. Each of these is an exit status.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "client/ctl/ctl-options.h"
#include "client/object.h"
#include "client/signals.h"

typedef struct Ctl Ctl;

enum {
        CTL_E_FAILED = 1,  /* and nothing more is known */
        CTL_E_USAGE,       /* the command line is wrong */
        CTL_E_DENIED,      /* not permitted */
        CTL_E_BUSY,        /* somebody has the counters */
        CTL_E_UNKNOWN,     /* there is no such object, event or process */
        CTL_E_INTERRUPTED, /* by signo; no exit status: perfallocctl dies of it */
        _CTL_E_MAX,
};

struct Ctl {
        const CtlOptions *options;
        const char *verb;
        char **words; /* after the verb; NULL-terminated */
        size_t n_words;
        Signals *signals;
        sd_event *event;
        sd_bus *bus;
        int signo;     /* what has asked perfallocctl to end, after ctl_watch_signals; else 0 */
        int status;    /* COMMAND's exit status */
        bool lost;     /* the service went away during the last call */
        bool terminal; /* standard output is one (or a pager's, on one) */
};

/* Connects; options and signals are set. */
int ctl_open(Ctl *c, Refusal *why);
void ctl_close(Ctl *c);

/* Whether pids, cgroups and files are the service's own too. */
bool ctl_is_local(const Ctl *c);

/* From now on SIGINT, SIGTERM and SIGHUP do not kill but end calls (CTL_E_INTERRUPTED) and
 * ctl_run. */
int ctl_watch_signals(Ctl *c);

/* Runs the event loop until *done, or until a signal asks to end: CTL_E_INTERRUPTED. */
int ctl_run(Ctl *c, const bool *done);

int ctl_call_new(Ctl *c, sd_bus_message **ret, const char *path, const char *interface,
                 const char *member);

/* Calls, and waits as long as it takes. A service that is started anew meanwhile is asked again
 * where that does no harm; else c->lost tells. Where polkit wants to ask somebody it may, by its
 * agent for terminals where there is one, the bus is the local one, and standard input is a
 * terminal. */
int ctl_call(Ctl *c, sd_bus_message *m, sd_bus_message **ret_reply, Refusal *why);

/* The same of a method with arguments as sd_bus_message_append(3) has them. ret_reply may be NULL.
 */
int ctl_call_method(Ctl *c, const char *path, const char *interface, const char *member,
                    sd_bus_message **ret_reply, Refusal *why, const char *types, ...);

/* The properties of one object, and of all but the Manager. */
int ctl_fetch(Ctl *c, const char *path, const char *interface, Object *ret, Refusal *why);
int ctl_fetch_all(Ctl *c, Objects *ret, Refusal *why);

/* The CTL_E_* of an error, with its words. */
int ctl_refuse(const sd_bus_error *error, Refusal *why);

/* The object that a word of the command line means, "N" or its whole path; the caller frees it.
 * kind is "hold", "counter"... CTL_E_USAGE for anything else. */
int ctl_path(const char *kind, const char *word, char **ret, Refusal *why);

/* Says what has gone wrong with one of several (and clears why), and lets the others be done.
 * Returns what is to be returned in the end: the first that went wrong, or at once what cannot be
 * gone on from: see ctl_may_go_on. */
int ctl_go_on(int sofar, int r, Refusal *why);

/* Not after a negative errno or a signal. */
bool ctl_may_go_on(int r);
