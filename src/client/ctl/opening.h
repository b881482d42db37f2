/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * OpenCounters, as the options of open and watch ask for it.
 */

#include "client/ctl/process.h"
#include "client/ctl/readings.h"

typedef struct Opening Opening;

struct Opening {
        char **events;      /* NULL-terminated */
        uint32_t pid;       /* the target, 0: none */
        CtlProcess process; /* the same, where it is of this machine */
        int cgroup;
};

#define OPENING_NULL ((Opening){ .process = CTL_PROCESS_NULL, .cgroup = -1 })

/* Looks up what the options name. child: what COMMAND is; 0: there is none. CTL_E_USAGE: nothing,
 * or too much, is to be counted. */
int opening_prepare(Ctl *c, char **events, pid_t child, Opening *ret, Refusal *why);
void opening_done(Opening *o);

/* Opens all of them. ret: the counters, in order. */
int opening_open(Ctl *c, const Opening *o, Readings *ret, Refusal *why);
