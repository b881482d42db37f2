/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who had which events open, and when, as those who opened them say; and what follows for a hold,
 * by the contract of holds (org.perfalloc1(5), perfalloc(1)) and by nothing that the service knows:
 *
 *   A hold of N is promised N general counters on each of its CPUs. A hold of all is promised
 *   everything that no other hold was promised by number. Promises add up: what other confirmed
 *   holds were promised, and their users have not opened since, must be free too. Confirmed means
 *   that so much was free at GrantTimestamp.
 *
 * What cannot be seen is neither here nor there: events of tasks that sleep count nowhere, and
 * those of tasks that run now and then neither refute a confirmation nor a refusal.
 */

/* before GLib, which has MIN and MAX of its own */
#include "core/util.h"

#include <glib.h>
#include <stdatomic.h>
#include <sys/types.h>

#define LOG_TAKES_MAX 65536u
#define LOG_RACE_USEC 1000u /* what changes within this time of a grant may be seen or not */
#define LOG_NEVER     UINT64_MAX

typedef struct Claim Claim;
typedef struct Demand Demand;
typedef struct Machine Machine;
typedef struct Take Take;
typedef struct TakeLog TakeLog;

/* What each CPU has. */
struct Machine {
        unsigned general;
        bool cycles; /* and a counter of its own for cycles */
};

/* When an event counts that is open. */
typedef enum TakeWhen {
        TAKE_ALWAYS,
        TAKE_NOW_AND_THEN, /* while its task runs */
        TAKE_NEVER,
        TAKE_OF_TASK, /* a task's breakpoint takes a slot of each CPU, beside other tasks' */
} TakeWhen;

/* Events of one process on one CPU. All times are CLOCK_REALTIME in µs. */
struct Take {
        pid_t pid;
        uid_t uid;
        unsigned cpu;
        TakeWhen when;
        bool of_service; /* opened by the service, for a client */
        bool roams;      /* its task's CPU went, and the task may run on any since */
        unsigned instructions, cycles;
        uint64_t opening, opened, closing, closed; /* LOG_NEVER: not yet */
};

struct TakeLog {
        atomic_uint n;
        Take takes[LOG_TAKES_MAX];
};

/* A hold that is granted and confirmed. */
struct Claim {
        uid_t uid;
        unsigned cpus;     /* a bit for each */
        unsigned counters; /* 0: all */
        uint64_t granted;
};

/* A hold that is to be judged, beside those claims. */
struct Demand {
        unsigned cpus; /* those online; on none nothing can be measured, so nothing is confirmed */
        unsigned counters;
        const Claim *claims;
        size_t n_claims;
};

typedef enum Verdict {
        VERDICT_TRUE,
        VERDICT_RACE, /* somebody came or went within LOG_RACE_USEC */
        VERDICT_FALSE,
        VERDICT_UNKNOWABLE, /* true only by what cannot be told from outside */
} Verdict;

TakeLog *log_new(void);       /* shared with the processes that are forked later */
void log_clear(TakeLog *log); /* nothing is open */
uint64_t log_now(void);

Take *log_open(TakeLog *log, const Take *what); /* before the events are opened */
void log_close(Take *t);                        /* before they are closed */

/* The CPU goes, or has gone, while nobody measures: what is open there counts nothing any more, and
 * its tasks run on other CPUs, also when it is back. */
void log_drop_cpu(TakeLog *log, unsigned cpu);

/* Of a hold that was confirmed as of then. */
Verdict log_judge_grant(const TakeLog *log, const Machine *m, const Demand *d, uint64_t granted);

/* Of a hold that was not, from its request to its answer. */
Verdict log_judge_refusal(const TakeLog *log, const Machine *m, const Demand *d, uint64_t from,
                          uint64_t until);

/* Whether nobody came or went in that time, and nothing counted now and then. */
bool log_is_still(const TakeLog *log, uint64_t from, uint64_t until);

/* Whether the process had anything open on those CPUs (0: anywhere) in that time. */
bool log_had_open(const TakeLog *log, pid_t pid, unsigned cpus, uint64_t from, uint64_t until);

/* Whether another user's counters of the service were open there. */
bool log_has_foreign(const TakeLog *log, uid_t uid, unsigned cpus);

/* General counters that a hold of that needs now, and whether cycles' own is free to be asked for:
 * not where more events are open than there are counters, for the kernel tries none of those behind
 * one that does not fit. */
unsigned log_needs(const TakeLog *log, const Machine *m, const Demand *d, unsigned cpu,
                   bool *ret_cycles);
