/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold as an object: its data, its number, and how it is found. Its transitions are in hold.h.
 */

#include "core/promise.h"
#include "perf/pmu/probe.h"
#include "service/bus/object.h"
#include "service/hold/hold-request.h"
#include "service/sibling/reader.h"
#include "service/store/store.h"
#include "service/util/context.h"

typedef struct Hold Hold;
typedef struct HoldCounted HoldCounted;
typedef struct HoldExplained HoldExplained;
typedef struct HoldLack HoldLack;
typedef struct HoldObstacle HoldObstacle;
typedef struct HoldWaiter HoldWaiter;
typedef struct Holds Holds;
typedef struct HoldsHooks HoldsHooks;

#define HOLD_READABLE_USEC (10 * USEC_PER_SEC) /* how long an ended hold can be read */
#define HOLD_READABLE_MAX  64u                 /* of one user */
#define HOLD_OBSTACLES_MAX 64u                 /* of one hold */
/* What users are told in place of a process that /proc hides from them. */
#define HOLD_OBSTACLE_HIDDEN "a process that /proc hides (hidepid=)"

/* Written to the store: never renumber. */
typedef enum HoldState {
        HOLD_QUEUED = 0,
        HOLD_YIELDING = 1, /* waits for yielders, then the probe measures */
        HOLD_GRANTED = 2,
        HOLD_ENDED = 3,
        _HOLD_STATE_MAX,
} HoldState;

/* Written to the store: never renumber. */
typedef enum HoldResult {
        HOLD_NONE = 0,
        HOLD_RELEASED = 1,
        HOLD_LEASE_CLOSED = 2,
        HOLD_EXPIRED = 3,
        HOLD_TIMED_OUT = 4,  /* in the queue */
        HOLD_OBSTRUCTED = 5, /* something did not yield */
        HOLD_REVOKED = 6,    /* released by somebody with manage */
        _HOLD_RESULT_MAX,
} HoldResult;

struct HoldObstacle {
        pid_t pid; /* 0: the kernel, or unknown */
        char *who;
};

/* What a scan has told of a slot where counters are missing. */
struct HoldExplained {
        const Pmu *pmu;
        unsigned cpu;
        PromiseHidden hidden;
};

/* A set of the service's own counters on a slot. */
struct HoldCounted {
        uid_t uid;
        pid_t pid; /* 0: not known */
        bool monitor;
        bool surely;       /* all the time, else while a task of its target runs there */
        uint64_t order;    /* of its oldest event there (perf/pmu/event-order.h) */
        CounterUse use;    /* there */
        unsigned n_events; /* no more counters than events are taken of those that fit anywhere */
};

typedef void (*HoldCount)(void *userdata, const HoldCounted *counted);

/* Where the probe found too few counters first. */
struct HoldLack {
        const Pmu *pmu; /* NULL: nowhere */
        unsigned cpu;
        unsigned n_wanted, n_free;
};

struct Hold {
        Object object;
        LedgerHold ledger;
        Holds *holds;
        Context *context;
        uid_t maker;  /* who asked for it; the object's uid is whose it is */
        pid_t pid;    /* likewise */
        char *client; /* its unique name on the bus; NULL: none, or it was on another bus */
        HoldRequest request;
        QuotaCharge charge;
        StoreItem item;

        HoldState state;
        HoldResult result;
        bool confirmed, alone; /* alone: not every CPU was probed from another (probe_is_alone()) */
        uint64_t requested_usec, granted_usec, expires_usec; /* CLOCK_REALTIME; 0: not set */
        uint64_t expires_boottime_usec; /* CLOCK_BOOTTIME: the expiry that counts; 0: never */
        bool warned;                    /* Expiring was sent */
        uint64_t admitted_usec;         /* CLOCK_MONOTONIC: when it was authorized */
        uint64_t latency_usec;
        uint64_t yield_until_usec, ended_usec; /* CLOCK_MONOTONIC */

        int lease; /* the read end; it hangs up when the last copy of the write end is closed */
        sd_event_source *lease_source;
        sd_event_source *step; /* end of the wait or of the yield, next look of the probe */
        sd_event_source *expiry;

        uint64_t since; /* events of a greater order were opened after the grant */

        Probe *probe;             /* under way, or done */
        Shape *usable;            /* by part of the scope: hold_usable() when it last looked */
        HoldExplained *explained; /* what an earlier one found taken, and holders have */
        size_t n_explained;
        unsigned n_explanations;
        bool looked_again; /* as nobody was found who has what was missing */
        Shape *promised;   /* by part of the scope, once confirmed */
        CpuSet joined; /* CPUs that came online after the grant and are not confirmed yet; it has
                        * room for all */
        uint64_t joined_retry_usec;
        ReaderJob *scan; /* of processes that may be in the way */
        HoldLack lack;
        HoldObstacle *obstacles;
        size_t n_obstacles;

        LIST_HEAD(, HoldWaiter) waiters;
        TAILQ_ENTRY(Hold) list;    /* holds->pending, granted or ended */
        LIST_ENTRY(Hold) measured; /* while it has a probe */
};

TAILQ_HEAD(HoldList, Hold);

/* What others do when holds change. */
struct HoldsHooks {
        /* The process asks for a hold of its own. */
        void (*requested)(void *userdata, pid_t pid);
        /* The set of active holds has changed. */
        void (*changed)(void *userdata);
        /* A hold of the user was granted, or a granted one has ended. */
        void (*granted)(void *userdata, uid_t uid);
        /* Adds foreground counters of other users in the scope as obstacles. */
        void (*add_foreign)(void *userdata, Hold *h);
        /* Adds the service's own counters that have some of what is missing on the slot; holders:
         * those that holders have opened in their holds, else all others. */
        void (*add_standing)(void *userdata, Hold *h, bool holders, const Pmu *pmu, unsigned cpu,
                             Shape missing);
        /* Calls f for the service's own counters on the slot. */
        void (*census)(void *userdata, const Pmu *pmu, unsigned cpu, HoldCount f, void *f_userdata);
};

struct Holds {
        Context *context;
        Objects objects;         /* also ended ones that can still be read */
        struct HoldList pending; /* active and not granted yet, in the ledger's order */
        struct HoldList granted;
        struct HoldList ended;      /* oldest first */
        LIST_HEAD(, Hold) measured; /* those that have a probe */
        size_t n_active;            /* not ended */
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

/* The hold that has not ended and that the maker has given this tag. NULL: there is none. */
Hold *hold_find_tagged(const Holds *holds, uid_t maker, const char *tag);

unsigned hold_queue_position(const Hold *h); /* 0: not queued */

const char *hold_state_name(HoldState state);
const char *hold_result_name(HoldResult result);

/* Ends a measurement under way; its probe alone. */
void hold_stop_measuring(Hold *h);
void hold_drop_probe(Hold *h);

/* Frees the memory only. The store keeps its record and descriptor. */
Hold *hold_free(Hold *h);

/* Frees a hold as if it had never existed, without a signal. Returns NULL. */
Hold *hold_discard(Hold *h);
DEFINE_CLEANUP(Hold *, hold_discard)
