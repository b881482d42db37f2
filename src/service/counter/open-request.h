/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arguments of OpenCounters, checked against this machine.
 */

#include "core/plan.h"
#include "perf/group/group.h"
#include "service/auth/asked.h"
#include "service/bus/peer.h"
#include "service/util/context.h"

typedef struct OpenRequest OpenRequest;

#define OPEN_EVENTS_MAX 1024u /* in one call */

struct OpenRequest {
        Event *events;
        size_t n_events;
        GroupScope scope;
        bool has_cpus;
        CpuSet cpus;  /* scope cpu and cgroup */
        uint32_t pid; /* 0: the caller */
        int pidfd;    /* borrowed, -1: by pid */
        int procfd;   /* borrowed, -1: no proof */
        int cgroup;   /* borrowed, else -1 */
        bool attach, descendants, group, pinned, monitor, start, persistent;
        uint32_t priority;
        PlanClass yields_to;
        const char *name; /* borrowed */
};

#define OPEN_REQUEST_NULL ((OpenRequest){ .pidfd = -1, .procfd = -1, .cgroup = -1 })

/* Refuses everything that is wrong with the arguments alone. Borrowed parts live as long as the
 * message. */
int open_request_read(Context *context, sd_bus_message *m, const Peer *peer, OpenRequest *ret,
                      Refusal *why);
void open_request_done(OpenRequest *q);

/* The actions (bits) that counting these events needs. untraceable: the caller may not trace the
 * target. */
unsigned events_actions(const Event *events, size_t n_events, GroupScope scope, bool untraceable);

/* What is asked for, for polkit; target is the owner of the target. */
void open_request_ask(const OpenRequest *q, uid_t target, Asked *ret);

/* The actions that the call needs. */
unsigned open_request_actions(const OpenRequest *q, bool untraceable);
