/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events that are counted together: started, stopped, scheduled, yielded and given up as one. A
 * single event is a group of one.
 *
 * A group is open at one or several parts: one per CPU, or one per thread of each target. At every
 * part the first event leads: the kernel gates all siblings by it, so one ioctl starts or stops
 * them.
 *
 * A slot is one event at one part. When its descriptor must go (to free a breakpoint, because its
 * CPU went offline) what it counted is added to the slot's base, so values and times go on and
 * never fall back.
 */

#include "core/reading.h"
#include "perf/event/event.h"
#include "perf/process/threads.h"

typedef struct Group Group;
typedef struct GroupPart GroupPart;
typedef struct GroupSlot GroupSlot;
typedef struct GroupTarget GroupTarget;

typedef enum GroupScope {
        GROUP_PROCESS,
        GROUP_CPU,
        GROUP_CGROUP,
        _GROUP_SCOPE_MAX,
} GroupScope;

struct GroupPart {
        int cpu;               /* -1: wherever the thread runs */
        pid_t tid;             /* -1: whoever runs on the CPU; a cgroup's parts too */
        size_t target;         /* whose thread it is, index in targets */
        bool ended;            /* the thread is gone, or the CPU is offline: nothing to open */
        uint64_t dropped_nsec; /* CLOCK_MONOTONIC: since when its pinned events are known to be off
                                * the PMU; 0: they are on it */
};

struct GroupSlot {
        int fd; /* -1 while closed */
        Reading base;
        Reading seen; /* what the descriptor said last, for the time in which it says nothing */
};

struct GroupTarget {
        pid_t pid;
        int pidfd;
        bool descendants; /* processes that it starts later inherit */
        const void
                *pending; /* who has yet to accept it; until then it does not count. NULL: nobody */
        bool guarded; /* whenever it had to be opened anew it is pending again, on the group itself
                       */
        uid_t uid;    /* whose it was when it was attached, for those who guard it */
        gid_t gid;
};

struct Group {
        GroupScope scope;
        bool pinned;      /* never multiplexed; the kernel drops it rather than share */
        bool descendants; /* of targets that group_add_target() adds: processes born later inherit,
                           * otherwise threads alone, and with pinned nobody */
        int cgroup;       /* directory descriptor for GROUP_CGROUP, else -1 */

        size_t n_events;
        Event *events;
        size_t n_targets;
        GroupTarget *targets;
        Reading *past; /* by event: what targets that were detached had counted */
        size_t n_parts;
        GroupPart *parts;
        GroupSlot *slots; /* n_parts * n_events, part by part */

        bool wanted;  /* started by its owner */
        bool yielded; /* given way: nothing is on the PMU, no slot taken where closing frees it */
        int error;    /* errno of an opening that failed after a yield, 0 when all is well */

        uint64_t version; /* of its descriptors: another one whenever any came or went */
};

/* Takes the events over, on failure too. All of one group must be on PMUs that yield the same way:
 * REFUSAL_INVALID_EVENT otherwise. */
int group_new(GroupScope scope, Event *events, size_t n_events, Group **ret, Refusal *why);
Group *group_free(Group *g);
DEFINE_CLEANUP(Group *, group_free)

/* Adds parts; nothing is opened yet. Online CPUs of the set get a part that opens, others one that
 * is ended until the CPU comes. */
int group_add_cpus(Group *g, const CpuSet *cpus, const CpuSet *online);

/* Adds a target and a part for each of its threads. pidfd is duplicated. */
int group_add_target(Group *g, pid_t pid, int pidfd, const Threads *threads);

/* The same with more to say of the target, of which any may be told: those of its descendants too.
 */
int group_attach(Group *g, const GroupTarget *target, const pid_t *tids, size_t n_tids);

/* A target that is pending counts like the others from now on. */
void group_accept(Group *g, size_t target);

/* Its events are closed, what they have counted stays in the sum (past). The place of the last
 * target becomes that of this one. */
void group_detach(Group *g, size_t target);

/* The place of a process that lives (or is a zombie) among the targets; n_targets when it has none.
 * One that has ended is not found: its number may be somebody else's. */
size_t group_find_target(const Group *g, pid_t pid);

/* Detaches targets that have ended for good. Those with descendants stay, for these may live on. */
void group_reap(Group *g);

/* Whether one of the target's threads, or of its descendants', is open. */
bool group_is_open_at(const Group *g, size_t target);

/* Whether the kernel has dropped a pinned event that should count: there was no counter for it. */
bool group_is_dropped(const Group *g);

/* Tries to bring back what was dropped. The time that it was off is enabled and not running, so
 * what it counts is scaled from then on. True when something was dropped or came back since the
 * last call. */
bool group_revive(Group *g);

/* Opens, disabled, what is not open. On failure all is as before. Refusals are
 * perf_event_open(2)'s. */
int group_open(Group *g, Refusal *why);

/* Sets what the owner wants; takes effect at once unless the group has yielded. */
void group_start(Group *g);
void group_stop(Group *g);

/* Starts them all, for less than one after the other costs. */
void groups_start(Group *const *groups, size_t n);

/* Value and times start again from 0. */
void group_reset(Group *g, size_t event);

/* Whether yielding closes its descriptors: then it need not be opened while it has yielded. */
bool group_closes_to_yield(const Group *g);

/* Gives way, goes on again. A resume that fails leaves the group closed, with error set: try again.
 * Where descriptors were closed, the targets' threads are looked up again: those that were born
 * meanwhile are counted from now on, and a number that has become somebody else's is left alone. */
void group_yield(Group *g);
int group_resume(Group *g, Refusal *why);

/* Opens (and starts) what should be open and is not, after an error. */
int group_mend(Group *g, Refusal *why);

/* A CPU has gone offline: the kernel has frozen its events, so what they counted is kept and they
 * are closed. It is back: they are opened anew, unless the group has yielded; a failure is in
 * error, see group_mend(). */
void group_cpu_leave(Group *g, unsigned cpu);
int group_cpu_join(Group *g, unsigned cpu, Refusal *why);

/* Sums over all parts and the past; the quality is that of the worst part that was ever enabled.
 * Never fails: a descriptor that cannot be read makes the whole unmeasured. */
void group_read(const Group *g, size_t event, Reading *ret, Quality *ret_quality);
void group_read_part(const Group *g, size_t event, size_t part, Reading *ret, Quality *ret_quality);

/* The open descriptors of one event: puts at most n of them, borrowed, into fds and returns how
 * many there are. */
size_t group_descriptors(const Group *g, size_t event, int *fds, size_t n);

/* Descriptors that a group of so many events holds open with its parts. */
size_t group_n_descriptors(const Group *g);

const char *group_scope_name(GroupScope scope);
