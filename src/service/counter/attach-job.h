/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Attaches one process to counter sets. The process is held by a pidfd, inspected, opened disabled
 * on all its threads, and inspected again. Only then it counts.
 *
 * Its threads are listed, opened, and listed again. The result is complete if no thread was created
 * meanwhile. If that fails repeatedly, or if existing descendants are to be counted too, the reader
 * stops the whole tree for a moment (perf/process/seize.h) and applies the trace rule to each
 * process.
 *
 * OpenCounters and AttachProcess use this: they know the caller, ask polkit, and answer.
 */

#include "service/auth/trace-rule.h"
#include "service/counter/counter-object.h"

typedef struct AttachJob AttachJob;

/* Called from the loop at the end of an operation, with 0, a refusal or a negative errno. A failed
 * opening leaves nothing behind. */
typedef void (*AttachJobDone)(void *userdata, int r, const Refusal *why);

struct AttachJob {
        Counters *counters;
        Peer *peer; /* whose rights count; borrowed */
        AttachJobDone done;
        void *userdata;

        pid_t pid; /* the target; 0: the proof will tell */
        int pidfd;
        int procfd; /* the proof, -1: there is none, or it was looked at */
        TraceClaim claim;
        bool descendants;

        bool inspected;
        ProcessFacts facts;    /* once inspected */
        char untraceable[256]; /* why the peer needs count-other, or empty */
        bool hidden;           /* the peer must not learn that it exists */
        bool allowed;          /* for the caller to set: count-other was granted */

        ReaderJob *job;
        CounterSet **sets; /* attached to it, or going to be; borrowed */
        size_t n_sets;
};

#define ATTACH_JOB_NULL ((AttachJob){ .pidfd = -1, .procfd = -1 })

/* Holds the target: the process behind pidfd (-1: none), with that pid (0: not given), or the one
 * that procfd holds, which proves that the peer may trace it (-1: no proof). If nothing is given it
 * is the peer's own process. They have to agree: REFUSAL_INVALID_PROCESS. Other refusals are those
 * of process_open(), process_from_pidfd() and trace_rule_check_number(). */
int attach_job_hold(AttachJob *a, pid_t pid, int pidfd, int procfd, Refusal *why);

/* Checks the proof and inspects the target. 0: done will be called. A proof that holds no process
 * is refused as by proof_open(). */
int attach_job_inspect(AttachJob *a);

/* Opens the target's threads for all sets, disabled. Sets that are started count them once this is
 * done. 0: it is done; -EINPROGRESS: done will be called. Refusals are those of perf_event_open(2),
 * and:
 *
 * - REFUSAL_ALREADY_ATTACHED: the target is attached, or a descendant of it, or a process that it
 *   descends from.
 * - REFUSAL_BUSY: the target creates threads too fast, or a process of the tree is traced.
 * - REFUSAL_NOT_PERMITTED: a process of the tree may not be traced, or the target has changed
 *   meanwhile. In the first case untraceable names it, and the caller may ask for count-other and
 *   open again.
 * - REFUSAL_NO_SUCH_PROCESS: the target has ended. */
int attach_job_open(AttachJob *a, Refusal *why);

/* Forgets the target and undoes an operation under way. */
void attach_job_done(AttachJob *a);

/* Whether done will be called. */
bool attach_job_is_waiting(const AttachJob *a);
