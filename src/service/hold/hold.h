/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Holds: queued -> yielding -> granted -> ended.
 *
 * A hold that may not wait and has somebody in its way never comes into being. Every other one goes
 * through all states; the order of what is told of it is a promise (org.perfalloc1(5)):
 * InterfacesAdded, the reply to Hold, State granted, HoldGranted, the replies to Wait; at the end
 * State and Result, the replies to Wait, HoldEnded.
 */

#include "perf/event/event.h"
#include "perf/pmu/probe.h"
#include "service/daemon/service.h"
#include "service/hold/hold-request.h"
#include "service/store/store.h"

typedef struct HoldWaiter HoldWaiter;
typedef struct HoldObstacle HoldObstacle;

#define HOLD_READABLE_USEC (10 * USEC_PER_SEC) /* how long an ended hold can be read */
#define HOLD_READABLE_MAX  64u                 /* of one user */
#define HOLD_OBSTACLES_MAX 64u                 /* told of one hold */

typedef enum HoldState {
        HOLD_QUEUED,
        HOLD_YIELDING, /* monitors are giving way, then the probe measures */
        HOLD_GRANTED,
        HOLD_ENDED,
        _HOLD_STATE_MAX,
} HoldState;

typedef enum HoldResult {
        HOLD_NONE,
        HOLD_RELEASED,
        HOLD_LEASE_CLOSED,
        HOLD_EXPIRED,
        HOLD_TIMED_OUT,  /* in the queue */
        HOLD_OBSTRUCTED, /* something would not give way */
        HOLD_REVOKED,    /* released by somebody with manage */
        _HOLD_RESULT_MAX,
} HoldResult;

struct HoldObstacle {
        pid_t pid; /* 0: the kernel, or nobody knows */
        char *who;
};

struct Hold {
        LedgerHold ledger;
        Service *service;
        uint64_t id;
        char *path;
        uid_t uid;
        pid_t pid;
        HoldRequest request;
        QuotaCharge charge;
        StoreItem item;

        HoldState state;
        HoldResult result;
        bool confirmed;
        uint64_t requested_usec, granted_usec, expires_usec; /* CLOCK_REALTIME, 0: not (yet) */
        uint64_t expires_boottime_usec; /* when it really does, CLOCK_BOOTTIME; 0: never */
        uint64_t admitted_usec;         /* CLOCK_MONOTONIC: authorized */
        uint64_t latency_usec;
        uint64_t yield_until_usec, ended_usec; /* CLOCK_MONOTONIC */
        uint64_t free_usec; /* likewise: all was measured free before anything was told; 0: not */

        int lease; /* the read end; it hangs up when the last copy of the write end is closed */
        sd_event_source *lease_source;
        sd_event_source *step; /* end of the wait or of the yield, next look of the probe */
        sd_event_source *expiry;

        Probe **probes; /* one per part of the scope that is being measured */
        size_t n_probes;
        bool measuring, measured_free;
        CpuSet joined;   /* CPUs that came online since the grant and were not measured yet */
        ReaderJob *scan; /* for who may be in the way */
        HoldObstacle *obstacles;
        size_t n_obstacles;

        LIST_HEAD(, HoldWaiter) waiters;
        TAILQ_ENTRY(Hold) list; /* service->pending, granted or ended */
};

int holds_init(Service *s); /* hold-store.h has what an earlier run has left */

/* Takes the request over, also on failure, and puts the hold into the ledger. Monitors have been
 * asked to give way, nobody has been told: the caller announces it and then calls hold_begin().
 * ret_lease is the write end, for the client; NULL for an unattended hold. Refusals: BUSY naming
 * who is in the way, LIMITS_EXCEEDED. */
int hold_new(Service *s, const Peer *peer, HoldRequest *request, Hold **ret, int *ret_lease,
             Refusal *why);
void hold_begin(Hold *h);

/* Gives it up; allowed in every state. */
void hold_end(Hold *h, HoldResult result);

Hold *hold_find(Service *s, uint64_t id);
unsigned hold_queue_position(const Hold *h); /* 0: not queued */

/* Who is in the way: while monitors give way, those who have not answered yet; later, who was
 * found. f returns negative to stop. */
int hold_obstacles(const Hold *h, int (*f)(void *userdata, pid_t pid, const char *who),
                   void *userdata);

const char *hold_state_name(HoldState state);
const char *hold_result_name(HoldResult result);

/* Somebody who was asked to yield has answered, or left. */
void holds_advance(Service *s);

/* A CPU has come online: holds that cover it are not confirmed any more until it is measured. */
void holds_cpu_joined(Service *s, unsigned cpu);

/* The number of a hold that is active now, for whoever has to be told to yield after it began. 0:
 * there is none. */
uint64_t holds_current(Service *s);

/* Whether a hold of uid is granted on the PMU. */
bool holds_grants(Service *s, uid_t uid, const Pmu *pmu);

/* Whether holds of uid are granted wherever an event of the PMU would count: on that CPU, or, with
 * -1, on all that the PMU has online. */
bool holds_cover(Service *s, uid_t uid, const Pmu *pmu, int cpu);

/* REFUSAL_BUSY when somebody else has an exclusive hold on counters that the events would take.
 * cpus NULL: a process, which may run anywhere. */
int holds_admit_opening(Service *s, uid_t uid, const Event *events, size_t n_events,
                        const CpuSet *cpus, Refusal *why);

/* Frees everything without telling anybody, for the end of the service. */
void holds_done(Service *s);

int hold_bus_register(Service *s);
