/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One process on its way under some counters: held, inspected, opened disabled on all its threads,
 * inspected again, and only then to count.
 *
 * Its threads are listed, opened and listed again; what was opened is good if nobody was born
 * meanwhile. Where that does not come about, and where descendants that live already are to be
 * counted too, the reader stops the whole tree for a moment (perf/process/seize.h), which passes
 * the trace rule process by process.
 *
 * For OpenCounters and AttachProcess: they say who asks, ask polkit, and answer.
 */

#include "service/auth/trace-rule.h"
#include "service/counter/counter-object.h"

typedef struct AttachJob AttachJob;

/* Called from the loop when what was begun is over: 0, a refusal or a negative errno. Nothing of a
 * failed opening is left. */
typedef void (*AttachJobDone)(void *userdata, int r, const Refusal *why);

struct AttachJob {
        Counters *counters;
        Peer *peer; /* by whose rights; borrowed */
        AttachJobDone done;
        void *userdata;

        pid_t pid; /* the target; 0: the proof will tell */
        int pidfd;
        int procfd; /* the proof, -1: there is none, or it was looked at */
        TraceClaim claim;
        bool descendants;

        bool inspected;
        ProcessFacts facts;    /* once inspected */
        char untraceable[256]; /* why the peer may not count it without count-other; empty: it may
                                */
        bool allowed;          /* for the caller to set: count-other was granted */

        ReaderJob *job;
        CounterSet **sets; /* to which it is attached, or is going to be; borrowed */
        size_t n_sets;
};

#define ATTACH_JOB_NULL ((AttachJob){ .pidfd = -1, .procfd = -1 })

/* Holds the target: the process behind pidfd (-1: none), with the number pid (0: not given), or
 * that of procfd, which proves that the peer may trace it (-1: nothing does); or, if nothing is
 * given, the peer's own. They have to agree: REFUSAL_INVALID_PROCESS. What process_open(),
 * process_from_pidfd() and trace_rule_check_number() refuse. */
int attach_job_hold(AttachJob *a, pid_t pid, int pidfd, int procfd, Refusal *why);

/* Has the proof and the target looked at: 0, done will be called; a proof that holds nobody is
 * refused as by proof_open(). */
int attach_job_inspect(AttachJob *a);

/* Opens the target's threads for all the sets, disabled, and, once done, sets that are started
 * count them. 0: it is done already; -EINPROGRESS: done will be called. Refusals are those of
 * perf_event_open(2), and REFUSAL_ALREADY_ATTACHED  it or one of its descendants is attached, or it
 * descends from one that is, REFUSAL_BUSY              it does not stand still, or somebody traces
 * it or one of its descendants, REFUSAL_NOT_PERMITTED     somebody in the tree may not be traced
 * (untraceable says who, and the caller may ask for count-other and open again), or it has changed
 * meanwhile, REFUSAL_NO_SUCH_PROCESS   it has ended. */
int attach_job_open(AttachJob *a, Refusal *why);

/* Forgets the target, and undoes what is under way. */
void attach_job_done(AttachJob *a);

/* Whether an answer is awaited: done will be called. */
bool attach_job_is_waiting(const AttachJob *a);
