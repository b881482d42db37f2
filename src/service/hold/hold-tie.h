/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a hold on behalf of somebody else is tied to: it ends with a process, or when the last
 * process has left a cgroup and all cgroups below it.
 *
 * The kernel tells both through a descriptor: a pidfd becomes readable (pidfd_open(2)), and the
 * file cgroup.events of cgroup2 reports a change as POLLPRI (cgroups(7)). A descriptor also tells
 * what happened while nobody watched it, and so is kept over a restart.
 */

#include <systemd/sd-event.h>

#include "core/refusal.h"

typedef struct HoldTie HoldTie;

/* Written to the store: never renumber. */
typedef enum HoldTieKind {
        HOLD_TIE_NONE = 0,
        HOLD_TIE_PROCESS = 1, /* fd is a pidfd */
        HOLD_TIE_CGROUP = 2,  /* fd is cgroup.events */
        _HOLD_TIE_MAX,
} HoldTieKind;

struct HoldTie {
        HoldTieKind kind;
        int fd; /* -1: none */
        sd_event_source *source;
        void (*ended)(void *userdata);
        void *userdata;
};

#define HOLD_TIE_NULL ((HoldTie){ .fd = -1 })

/* Ties to a client's descriptor, which stays the caller's. REFUSAL_INVALID_ARGS,
 * REFUSAL_BAD_DESCRIPTOR, REFUSAL_NO_SUCH_PROCESS: it is none, or has ended already. */
int hold_tie_to_process(HoldTie *ret, int pidfd, Refusal *why);
int hold_tie_to_cgroup(HoldTie *ret, int directory, Refusal *why);

/* Calls ended once, from the loop, when it ends or has ended. The tie must not be moved
 * afterwards. Does nothing for HOLD_TIE_NONE. */
int hold_tie_watch(HoldTie *tie, sd_event *event, void (*ended)(void *userdata), void *userdata);

void hold_tie_done(HoldTie *tie);
