/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arguments of OpenEvent and OpenEvents, checked against this machine and the allow-list of
 * attr fields (core/attr-rules.h).
 */

#include "core/attr-rules.h"
#include "perf/event/event.h"
#include "perf/pmu/pmu.h"
#include "perf/process/thread.h"
#include "service/auth/asked.h"

#include <systemd/sd-bus.h>

typedef struct EventRequest EventRequest;

struct EventRequest {
        Attr attr;  /* with disabled set */
        bool start; /* the client did not set disabled */
        AttrNeeds needs;
        char name[96]; /* for messages: "event 0x2 of PMU software" */
        Event event;   /* for rules and errors; borrows name */

        pid_t pid; /* 0: the caller; -1: everybody on cpu */
        int cpu;   /* -1: all */
        unsigned long flags;
        int procfd, pidfd, group, cgroup; /* borrowed from the message, else -1 */
        bool descendants;                 /* of OpenEvents */
};

#define EVENT_REQUEST_NULL ((EventRequest){ .procfd = -1, .pidfd = -1, .group = -1, .cgroup = -1 })

/* Reads the attr, with pid and cpu already set, for all who open raw events: refuses what
 * attr_read() and attr_rules_check() refuse, and PMUs that this machine has not. q must not move.
 */
int event_request_take_attr(const PmuTable *pmus, const void *bytes, size_t n, EventRequest *q,
                            Refusal *why);

/* Refuses everything that is wrong with the arguments alone. ret must not move. */
int event_request_read(const PmuTable *pmus, sd_bus_message *m, EventRequest *ret, Refusal *why);

/* The same for OpenEvents. */
int event_request_read_tree(const PmuTable *pmus, sd_bus_message *m, EventRequest *ret,
                            Refusal *why);

/* Whether it counts one process, rather than a CPU or a cgroup. */
bool event_request_has_target(const EventRequest *q);

/* Whether it joins a group as a sibling. */
bool event_request_joins(const EventRequest *q);

/* Whether its records go to the leader's buffer, without its joining the group. */
bool event_request_redirects(const EventRequest *q);

/* The pid for a message: the target's thread; -1: none. */
pid_t event_request_pid(const EventRequest *q, const Thread *target);

/* The actions (bits) that the call needs. untraceable: the caller may not trace the target. */
unsigned event_request_actions(const EventRequest *q, bool untraceable);

/* What these actions authorize, as in PerfOpen's allowed. */
unsigned event_request_allowed(const EventRequest *q, bool untraceable);

/* What is asked for, for polkit; target is the owner of the target. */
void event_request_ask(const EventRequest *q, uid_t target, Asked *ret);

/* Puts the fields that needed the denied actions in front of a refusal's text. */
void event_request_blame(const EventRequest *q, unsigned actions, Refusal *why);
