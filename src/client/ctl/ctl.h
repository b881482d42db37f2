/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What all verbs of perfallocctl(1) share: their command line, the connection to the service, and
 * calls.
 *
 * A function that can fail returns a negative errno for fatal errors, or one of CTL_E_* with its
 * text in why. Each of these is an exit status.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "client/ctl/ctl-options.h"
#include "client/object.h"
#include "client/signals.h"

typedef struct Ctl Ctl;

enum {
        CTL_E_FAILED = 1,  /* any other error */
        CTL_E_USAGE,       /* the command line is wrong */
        CTL_E_DENIED,      /* not permitted */
        CTL_E_BUSY,        /* the counters are in use */
        CTL_E_UNKNOWN,     /* there is no such object, event or process */
        CTL_E_INTERRUPTED, /* by signo, of which perfallocctl dies: no exit status */
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
        int signo;     /* that asked to end, after ctl_watch_signals(); else 0 */
        int status;    /* COMMAND's exit status */
        bool lost;     /* the service ended during the last call */
        bool terminal; /* standard output is one (or a pager's, on one) */
        size_t width;  /* of this terminal; else 0 */
};

/* Connects. options and signals must be set. */
int ctl_open(Ctl *c, Refusal *why);
void ctl_close(Ctl *c);

/* Whether standard output is a terminal, and how wide. */
void ctl_look_at_terminal(Ctl *c);

/* Whether pids, cgroups and files are the same for the service. */
bool ctl_is_local(const Ctl *c);

/* From now on SIGINT, SIGTERM and SIGHUP do not kill, but end calls (CTL_E_INTERRUPTED) and
 * ctl_run(). */
int ctl_watch_signals(Ctl *c);

/* Runs the event loop until *done, or until a signal asks to end: CTL_E_INTERRUPTED. */
int ctl_run(Ctl *c, const bool *done);

/* Standard output could not be written. */
int ctl_refuse_unwritten(int error, Refusal *why);

int ctl_call_new(Ctl *c, sd_bus_message **ret, const char *path, const char *interface,
                 const char *member);

/* Calls, and waits without a time-out. If the service is restarted meanwhile, a harmless call is
 * repeated; for any other c->lost is set. polkit may prompt: by its agent for terminals, if there
 * is one, the bus is the local one, and standard input is a terminal. */
int ctl_call(Ctl *c, sd_bus_message *m, sd_bus_message **ret_reply, Refusal *why);

/* The same, but polkit may not prompt. */
int ctl_call_unprompted(Ctl *c, sd_bus_message *m, sd_bus_message **ret_reply, Refusal *why);

/* As ctl_call(), for a method with arguments in the form of sd_bus_message_append(3). ret_reply may
 * be NULL. */
int ctl_call_method(Ctl *c, const char *path, const char *interface, const char *member,
                    sd_bus_message **ret_reply, Refusal *why, const char *types, ...);

/* Reads the properties of one object; those of all objects but the Manager. */
int ctl_fetch(Ctl *c, const char *path, const char *interface, Object *ret, Refusal *why);
int ctl_fetch_all(Ctl *c, Objects *ret, Refusal *why);

/* The CTL_E_* of an error, with its text. */
int ctl_refuse(const sd_bus_error *error, Refusal *why);

/* The path of the object that a word of the command line names, "N" or the whole path; the caller
 * frees it. kind is "hold", "counter"... CTL_E_USAGE for anything else. */
int ctl_path(const char *kind, const char *word, char **ret, Refusal *why);

/* Reports the failure of one of several (and clears why), and lets the others be done. Returns the
 * first failure, for the end, or at once one after which ctl_may_go_on() is false. */
int ctl_go_on(int sofar, int r, Refusal *why);

/* False after a negative errno or a signal. */
bool ctl_may_go_on(int r);
