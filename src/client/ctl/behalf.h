/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The options of the verb hold that ask for a hold on behalf of others.
 */

#include "client/ctl/process.h"

typedef struct Behalf Behalf;

struct Behalf {
        uid_t uid; /* with --uid */
        CtlProcess process;
        int cgroup; /* -1: none */
};

#define BEHALF_NULL ((Behalf){ .process = CTL_PROCESS_NULL, .cgroup = -1 })

/* Looks up what the options name. CTL_E_USAGE, CTL_E_UNKNOWN. */
int behalf_prepare(const CtlOptions *o, Behalf *ret, Refusal *why);
void behalf_done(Behalf *b);

/* Appends the entries of Hold's options; the array is the caller's. */
int behalf_append(sd_bus_message *m, const CtlOptions *o, const Behalf *b);
