/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A process of this machine that is to be counted, as descriptors: its number may be another
 * process's by the time that the service looks, and is in a container.
 */

#include "client/ctl/ctl.h"

typedef struct CtlProcess CtlProcess;

struct CtlProcess {
        int pidfd;
        int procfd; /* its maps, which show that the user may trace it; -1: it may not */
};

#define CTL_PROCESS_NULL ((CtlProcess){ .pidfd = -1, .procfd = -1 })

/* CTL_E_UNKNOWN: there is no such process; CTL_E_USAGE: it is no process. */
int ctl_process_open(uint32_t pid, CtlProcess *ret, Refusal *why);
void ctl_process_done(CtlProcess *p);

/* Appends them to a dictionary of options. */
int ctl_process_append(const CtlProcess *p, sd_bus_message *m);
