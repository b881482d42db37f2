/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The command line of perfallocctl(1): a verb, its words, and options anywhere before "--".
 */

#include "client/options.h"

typedef struct CtlOptions CtlOptions;

struct CtlOptions {
        bool help, version;

        /* how to say it */
        bool json, no_legend, no_pager, quiet;
        const char *output; /* open: a file in place of standard output or standard error */

        /* where to ask; NULL: here */
        const char *host, *machine;

        Options hold; /* hold: what perfalloc(1) asks for too; cpus and reason also of others */
        uint64_t lifetime_usec, deadline_usec; /* 0: the service's default */

        /* open, watch, attach */
        bool all_cpus, descendants, group, pinned, persistent, detached, stopped;
        uint32_t pid, priority;
        const char *cgroup, *role, *yield, *name;

        bool each;              /* read */
        uint64_t interval_usec; /* watch */
        uint32_t count;

        char **words; /* the verb first; NULL-terminated, NULL without any */
        size_t n_words;
        char **command; /* what follows "--"; NULL-terminated, NULL without it */
        uint64_t given; /* a bit for each row of the table */
};

#define CTL_OPTIONS_NULL ((CtlOptions){})

/* Texts are those of argv, which has to outlive ret. REFUSAL_INVALID_ARGS: names the option. */
int ctl_options_parse(CtlOptions *ret, int argc, char **argv, Refusal *why);
void ctl_options_done(CtlOptions *o);

/* REFUSAL_INVALID_ARGS: an option was given that does not go with this verb. */
int ctl_options_check(const CtlOptions *o, const char *verb, Refusal *why);

void ctl_options_print(void);
