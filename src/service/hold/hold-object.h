/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold as an object: what is known of it, its number, and how it is found. What happens to it is
 * in hold.h.
 */

#include "perf/pmu/probe.h"
#include "service/bus/object.h"
#include "service/hold/hold-request.h"
#include "service/sibling/reader.h"
#include "service/store/store.h"
#include "service/util/context.h"

typedef struct Cover Cover;
typedef struct Hold Hold;
typedef struct HoldObstacle HoldObstacle;
typedef struct HoldWaiter HoldWaiter;
typedef struct Holds Holds;
typedef struct HoldsHooks HoldsHooks;

#define HOLD_READABLE_USEC (10 * USEC_PER_SEC) /* how long an ended hold can be read */
#define HOLD_READABLE_MAX  64u                 /* of one user */
#define HOLD_OBSTACLES_MAX 64u                 /* told of one hold */
/* What users are told in place of a process that /proc hides from them. */
#define HOLD_OBSTACLE_HIDDEN "a process that /proc hides (hidepid=)"

/* Written to the store: never renumber. */
typedef enum HoldState {
        HOLD_QUEUED = 0,
        HOLD_YIELDING = 1, /* monitors are giving way, then the probe measures */
        HOLD_GRANTED = 2,
        HOLD_ENDED = 3,
        _HOLD_STATE_MAX,
} HoldState;

/* Likewise. */
typedef enum HoldResult {
        HOLD_NONE = 0,
        HOLD_RELEASED = 1,
        HOLD_LEASE_CLOSED = 2,
        HOLD_EXPIRED = 3,
        HOLD_TIMED_OUT = 4,  /* in the queue */
        HOLD_OBSTRUCTED = 5, /* something would not give way */
        HOLD_REVOKED = 6,    /* released by somebody with manage */
        _HOLD_RESULT_MAX,
} HoldResult;

struct HoldObstacle {
        pid_t pid; /* 0: the kernel, or nobody knows */
        char *who;
};

struct Hold {
        Object object;
        LedgerHold ledger;
        Holds *holds;
        Context *context;
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
        TAILQ_ENTRY(Hold) list; /* holds->pending, granted or ended */
};

TAILQ_HEAD(HoldList, Hold);

/* Granted holds that have all counters of a slot, and those of them whose measurement found them
 * free. */
struct Cover {
        uint32_t n_full, n_confirmed;
};

/* What others do when holds change. */
struct HoldsHooks {
        /* The process asks for a hold of its own. */
        void (*requested)(void *userdata, pid_t pid);
        /* Which holds are active has changed. */
        void (*changed)(void *userdata);
        /* A hold of the user was granted, or a granted one has ended. */
        void (*granted)(void *userdata, uid_t uid);
        /* Adds the service's own counters that count in the scope as obstacles: other users'
         * foreground ones, or, after the probe has found counters taken, all that have not yielded.
         */
        void (*add_counters)(void *userdata, Hold *h, bool foreign);
};

struct Holds {
        Context *context;
        Objects objects;         /* ended ones that can still be read too */
        struct HoldList pending; /* active, not granted yet, in the ledger's order */
        struct HoldList granted;
        struct HoldList ended; /* oldest first */
        size_t n_active;       /* not ended */
        Cover **cover;         /* by PMU and CPU: what granted holds of all counters cover */
        bool advancing, advance_again;
        sd_event_source *forget; /* when the oldest ended hold goes */
        HoldsHooks hooks;
        void *userdata; /* of the hooks */
};

static inline Hold *hold_of_object(Object *o) {
        return container_of(o, Hold, object);
}

static inline Hold *hold_of_ledger(LedgerHold *l) {
        return container_of(l, Hold, ledger);
}

Hold *hold_find(const Holds *holds, uint64_t id); /* NULL: there is none */

unsigned hold_queue_position(const Hold *h); /* 0: not queued */

const char *hold_state_name(HoldState state);
const char *hold_result_name(HoldResult result);

/* Ends the measurement that is under way. */
void hold_stop_measuring(Hold *h);

/* Frees the memory alone: what is kept of it stays with systemd. */
Hold *hold_free(Hold *h);

/* Frees a hold as if it had never been, without a signal. Returns NULL. */
Hold *hold_discard(Hold *h);
DEFINE_CLEANUP(Hold *, hold_discard)
