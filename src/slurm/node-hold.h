/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The hold of a job step on this node: taken by root in the step's slurmstepd, on behalf of the
 * job's user.
 *
 * It is tied to the step's cgroup, or where Slurm has none to the slurmstepd, so it ends with the
 * step, however that ends. Its tag makes the call idempotent, so that it can be repeated when the
 * service is restarted meanwhile.
 */

#include <systemd/sd-bus.h>

#include "slurm/slurm-option.h"

typedef struct NodeHold NodeHold;

#define NODE_WORDS_MAX 600

struct NodeHold {
        sd_bus *bus;
        char *path;
        bool missing;               /* not all counters are held, or not confirmed to be free */
        char words[NODE_WORDS_MAX]; /* what is missing, or why there is no hold */
};

#define NODE_HOLD_NULL ((NodeHold){})

enum {
        NODE_HOLD_E_FAILED = 1, /* as words say */
};

/* Returns when it is granted. reason and tag name the step. With best-effort it succeeds in any
 * case, and h->missing tells. NODE_HOLD_E_FAILED, or a negative errno. */
int node_hold_take(NodeHold *h, const SlurmOption *o, uid_t uid, const char *tag,
                   const char *reason);
void node_hold_release(NodeHold *h);
