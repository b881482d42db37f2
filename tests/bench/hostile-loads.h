/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The worst that one user can do to the others. alice is at her limits in what has one: holds
 * queued, calls that wait, counters, samplers; the rest alice does as fast as possible.
 */

#include "bench.h"

typedef struct HostileLoad HostileLoad;

typedef enum HostileKind {
        HOSTILE_GREED,    /* as much as possible */
        HOSTILE_AT_LIMIT, /* at a limit per user */
        HOSTILE_ALONE,    /* not beside others: it needs the same limits as another, or is not about
                             the service */
} HostileKind;

struct HostileLoad {
        const char *name; /* NULL: the end */
        void (*play)(int ready);
        HostileKind kind;
};

extern const HostileLoad hostile_loads[];

/* Starts it in a process of its own, and waits until alice has what there is a limit for. */
pid_t hostile_start(const HostileLoad *l);

/* Ends those processes, and waits until all that alice had is gone. */
void hostile_stop(pid_t pids[], size_t n);
