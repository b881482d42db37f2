/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * OpenCounters with the options of the verbs open and watch.
 */

#include "client/ctl/process.h"
#include "client/ctl/readings.h"

typedef struct Opening Opening;

struct Opening {
        char **events;      /* NULL-terminated */
        char **user_only;   /* the events after a fallback, owned; else NULL */
        uint32_t pid;       /* the target, 0: none */
        CtlProcess process; /* of the target, if it is on this machine */
        int cgroup;
};

#define OPENING_NULL ((Opening){ .process = CTL_PROCESS_NULL, .cgroup = -1 })

/* The events that c->words name, each of which may be a list; event_list_free() frees them.
 * CTL_E_USAGE: one is empty. */
int opening_events(const Ctl *c, char ***ret, Refusal *why);

/* Looks up what the options name. child: the pid of COMMAND; 0: there is none. CTL_E_USAGE: there
 * is nothing, or too much, to be counted. */
int opening_prepare(Ctl *c, char **events, pid_t child, Opening *ret, Refusal *why);
void opening_done(Opening *o);

/* Opens a cgroup of this machine. CTL_E_UNKNOWN: there is none. */
int opening_cgroup(const char *name, int *ret, Refusal *why);

/* Opens all events. ret: a counter for each, in order. Where counting the kernel is not permitted,
 * user space is counted, unless the options forbid it: o->events says so. */
int opening_open(Ctl *c, Opening *o, Readings *ret, Refusal *why);
