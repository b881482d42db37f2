/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The command line of perfalloc(1): PCP's -D, -d, -f, -h, -v, and further options of a hold.
 *
 * Options end at the first word that is not one, so that COMMAND keeps its own.
 */

#include "client/launch.h"

typedef struct Options Options;

struct Options {
        /* for the service; NULL, 0: its default */
        bool exclusive;
        bool best_effort;
        bool require; /* fail where there is nothing to hold */
        uint32_t counters;
        const char *cpus;
        char **pmus;        /* NULL-terminated */
        uint64_t wait_usec; /* TIMESPAN_INFINITY: no limit */
        const char *reason;

        /* of COMMAND */
        const char *broker_word; /* NULL: auto */
        LaunchMode broker;
        const char *allow;    /* NULL: LAUNCH_ALLOW */
        const char *paranoid; /* as in Launch */

        /* for perfalloc itself */
        bool background;
        const char *lock_file;
        bool quiet;
        bool help;
        bool version;
        char **command; /* NULL-terminated, NULL without one */
};

#define OPTIONS_NULL ((Options){})

/* Texts point into argv, which must outlive ret. REFUSAL_INVALID_ARGS names the option. */
int options_parse(Options *ret, int argc, char **argv, Refusal *why);
void options_done(Options *o);

void options_print_help(void);
