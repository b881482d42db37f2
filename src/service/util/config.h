/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perfallocd.conf(5).
 */

#include "core/quota.h"

typedef struct Config Config;
typedef struct BridgePath BridgePath;
typedef struct BridgesConfig BridgesConfig;

#define BRIDGE_PATH_MAX 1024u

typedef enum BridgeMode {
        BRIDGE_AUTO, /* the usual path of the other software */
        BRIDGE_NO,
        BRIDGE_PATH,
} BridgeMode;

struct BridgePath {
        BridgeMode mode;
        char path[BRIDGE_PATH_MAX]; /* empty unless BRIDGE_PATH */
};

/* Section [Bridges]. */
struct BridgesConfig {
        BridgePath pcp, likwid;
        uint64_t pcp_grace_usec, likwid_grace_usec;
        bool nmi_watchdog;
};

struct Config {
        uint64_t hold_max_usec; /* the longest time of a hold without manage */
        uint64_t wait_max_usec; /* the longest wait in the queue without manage */
        uint64_t idle_exit_usec;
        uint64_t sampler_interval_min_usec;
        uint64_t sampler_signal_min_usec; /* as above, for samplers with a signal at each tick */
        uint64_t limits[_QUOTA_GOOD_MAX];
        uint64_t kept_descriptors; /* of foreground counters of all users, kept over a restart */
        BridgesConfig bridges;
};

void config_default(Config *c);

/* Reads the file over c. An invalid line is logged with file and line, and has no effect. A missing
 * file is not an error. */
void config_load(Config *c, const char *path);
