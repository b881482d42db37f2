/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perfallocd.conf(5).
 */

#include "core/quota.h"

typedef struct Config Config;

struct Config {
        uint64_t hold_max_usec; /* how long a hold lasts at most, without manage */
        uint64_t wait_max_usec; /* how long it stands in the queue at most, without manage */
        uint64_t idle_exit_usec;
        uint64_t sampler_interval_min_usec;
        uint64_t sampler_signal_min_usec; /* the same for samplers that signal each tick */
        uint64_t limits[_QUOTA_GOOD_MAX];
};

void config_default(Config *c);

/* Reads the file over c. A line that is wrong is said in the journal, by file and line, and has no effect;
 * the others have. A file that does not exist is fine. */
void config_load(Config *c, const char *path);
