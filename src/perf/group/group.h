/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events that are counted together: started, stopped, scheduled and yielded as one. A single event
 * is a group of one. What is done with a group is in group-*.h.
 *
 * A group has one or several parts: one per CPU, or one per thread of each target, and each of
 * these once for every PMU that counts the events (event_units()). At each part the first event
 * leads: the kernel gates all siblings by it, so one ioctl starts or stops them.
 *
 * A slot is one event at one part. When its descriptor is closed (to free a breakpoint, or because
 * its CPU went offline) what it counted is added to the slot's base, so values and times never go
 * back.
 */

#include "core/reading.h"
#include "core/shared-fd.h"
#include "perf/event/event.h"

typedef struct Group Group;
typedef struct GroupExtent GroupExtent;
typedef struct GroupPart GroupPart;
typedef struct GroupSlot GroupSlot;
typedef struct GroupTarget GroupTarget;

/* Written to the store: never renumber. */
typedef enum GroupScope {
        GROUP_PROCESS = 0,
        GROUP_CPU = 1,
        GROUP_CGROUP = 2,
        _GROUP_SCOPE_MAX,
} GroupScope;

struct GroupPart {
        int cpu;               /* -1: wherever the thread runs */
        pid_t tid;             /* -1: whatever runs on the CPU; also of a cgroup's parts */
        pid_t pid;             /* of the thread's process, which is the target or a descendant */
        size_t target;         /* of the thread: index in targets */
        size_t unit;           /* of the PMU, see event_on() */
        bool ended;            /* the thread has ended, or the CPU is offline: nothing to open */
        bool yielded;          /* on this CPU; of scope cpu and cgroup */
        uint64_t dropped_nsec; /* CLOCK_MONOTONIC: when its pinned events were found dropped from
                                * the PMU; 0: they are on it */
};

struct GroupSlot {
        int fd;    /* -1 while closed */
        bool told; /* at the last reading: the descriptor told what it had counted */
        Count base;
        Count seen; /* what the descriptor told last */
};

struct GroupTarget {
        pid_t pid;
        SharedFd *process;   /* its pidfd */
        bool descendants;    /* processes that it creates later inherit */
        const void *pending; /* what must accept it before it counts; NULL: nothing */
        bool by_opener;      /* who has opened the group has attached it */
        bool guarded;        /* a reopening makes it pending again, on the group itself */
        uid_t uid;           /* when attached, of all of it; -1: several users', or unknown */
        gid_t gid;
};

/* So many of its first targets and parts. */
struct GroupExtent {
        size_t n_targets, n_parts;
};

struct Group {
        GroupScope scope;
        bool pinned;      /* never multiplexed: the kernel drops it instead */
        bool unpinning;   /* what is opened now is not pinned any more, see group_unpin() */
        bool descendants; /* default of targets: processes created later inherit, else only threads;
                           * with pinned nothing does */
        int cgroup;       /* directory descriptor for GROUP_CGROUP, else -1 */

        size_t n_events;
        Event *events;
        size_t n_targets;
        GroupTarget *targets;
        Reading *past; /* by event: what detached targets counted */
        size_t n_parts;
        GroupPart *parts;
        GroupSlot *slots; /* n_parts * n_events, part by part */
        uint64_t *buffer; /* of group_buffer_size(), for what a leader tells of all events */

        bool wanted;  /* started by its owner */
        bool yielded; /* nothing is on the PMU: all parts have yielded, or a process does as a whole
                       */
        bool drops_changed; /* what is dropped, since the last group_revive() */
        int error;          /* errno of an opening that failed after a yield, else 0 */

        unsigned gates_due;  /* so often it is gated again, see gate.h */
        uint64_t gates_usec; /* CLOCK_MONOTONIC: when, the next time */

        uint64_t version; /* changes whenever a descriptor is opened or closed */
        GroupExtent same; /* so much has not changed since group_note_saved() */
        bool mixed;       /* parts are not in the order of their targets */
        size_t room;      /* parts that there is memory for */
        size_t reap;      /* where group_reap() goes on */
};

/* Takes the events over, on failure too. REFUSAL_INVALID_EVENT: they do not fit into one group, or
 * their PMUs do not yield in the same way. */
int group_new(GroupScope scope, Event *events, size_t n_events, Group **ret, Refusal *why);
Group *group_free(Group *g);
DEFINE_CLEANUP(Group *, group_free)

/* Whether yielding closes its descriptors: then it need not be opened while it has yielded. */
bool group_closes_to_yield(const Group *g);

/* Puts at most n open descriptors of one event, borrowed, into fds; returns how many there are. */
size_t group_descriptors(const Group *g, size_t event, int *fds, size_t n);

/* How many descriptors it has when all is open. */
size_t group_n_descriptors(const Group *g);

const char *group_scope_name(GroupScope scope);

/* How many PMUs count its events. */
size_t group_units(const Group *g);

/* ---- parts, for group-*.c ---- */

static inline GroupSlot *group_slot(const Group *g, size_t part, size_t event) {
        return &g->slots[part * g->n_events + event];
}

static inline bool group_part_is_open(const Group *g, size_t part) {
        return group_slot(g, part, 0)->fd >= 0;
}

static inline bool group_part_is_yielded(const Group *g, size_t part) {
        return g->yielded || g->parts[part].yielded;
}

static inline bool group_part_is_pending(const Group *g, size_t part) {
        return g->scope == GROUP_PROCESS && g->targets[g->parts[part].target].pending;
}

/* Of what read(2) of a leader returns: nr, time_enabled, time_running. */
#define GROUP_BUFFER_HEAD 3u

static inline size_t group_buffer_size(const Group *g) {
        return (GROUP_BUFFER_HEAD + g->n_events) * sizeof(uint64_t);
}

static inline const Event *group_part_event(const Group *g, size_t part, size_t event) {
        return event_on(&g->events[event], g->parts[part].unit);
}

/* These and what is behind them are not the same any more. */
void group_touch_target(Group *g, size_t target);
void group_touch_part(Group *g, size_t part);

/* To the leader, which gates its siblings. */
void group_part_ioctl(const Group *g, size_t part, unsigned long request);

int group_allocate(Group *g);            /* what depends on the number of events; -ENOMEM */
int group_grow(Group *g, size_t n_more); /* makes room for more parts; -ENOMEM */
void group_add_part(Group *g, GroupPart part);

/* Its parts; there is room for them. */
void group_add_thread(Group *g, pid_t tid, pid_t pid, size_t target);
void group_close_part(Group *g, size_t part);
