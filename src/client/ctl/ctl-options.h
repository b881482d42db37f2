/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The command line of perfallocctl(1): a verb, its words, and options anywhere before "--".
 */

#include "client/options.h"

typedef struct CtlOptions CtlOptions;

struct CtlOptions {
        bool help, version;

        /* the output */
        bool json, no_legend, no_pager, quiet;
        const char *output; /* open: a file instead of standard output or standard error */

        /* the place of the service; NULL: here */
        const char *host, *machine;

        Options hold; /* hold: those of perfalloc(1); cpus and reason also of other verbs */
        uint64_t lifetime_usec, deadline_usec; /* 0: the service's default */
        const char *uid, *tag; /* hold, on behalf of others; tag also release, extend */
        uint32_t pidfd;        /* likewise: a process's number, 0: none */

        /* open, watch, attach */
        bool all_cpus, descendants, group, pinned, persistent, detached, stopped, no_fallback;
        uint32_t pid, priority;
        const char *cgroup, *role, *yield, *name;

        uint32_t repeat;                  /* open: runs of the command */
        const char *separator;            /* open: of fields */
        bool all;                         /* holds: ended ones too */
        bool watch;                       /* status */
        const char *since, *until, *user; /* log */
        const char *plot;                 /* watch: a file */
        bool each;                        /* read */
        uint64_t interval_usec;           /* watch, status */
        uint32_t count;
        const char *format; /* metrics */

        char **words; /* the verb first; NULL-terminated, NULL without any */
        size_t n_words;
        char **command; /* what follows "--", or run; NULL-terminated, or NULL */
        uint64_t given; /* a bit for each row of the table */
};

#define CTL_OPTIONS_NULL ((CtlOptions){})

/* Texts point into argv, which must outlive ret. REFUSAL_INVALID_ARGS names the option. */
int ctl_options_parse(CtlOptions *ret, int argc, char **argv, Refusal *why);
void ctl_options_done(CtlOptions *o);

/* REFUSAL_INVALID_ARGS: an option does not apply to this verb. */
int ctl_options_check(const CtlOptions *o, const char *verb, Refusal *why);

/* The options of a verb; NULL: all options. */
void ctl_options_print(const char *verb);
