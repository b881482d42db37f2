/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Opens events on one process: counter sets (attach-sets.h), or a profiler's event
 * (service/event/events-call.h). The process is held by a pidfd, inspected, opened disabled on all
 * its threads, and inspected again. Only then it counts.
 *
 * Its threads are listed, opened, and listed again. The result is complete if no thread was created
 * meanwhile. If that fails repeatedly, or if existing descendants are to be counted too, the reader
 * stops the whole tree for a moment (perf/process/seize.h) and applies the trace rule to each
 * process.
 *
 * OpenCounters, AttachProcess and OpenEvents use this: they know the caller, ask polkit, and
 * answer.
 */

#include "core/shared-fd.h"
#include "service/auth/trace-rule.h"
#include "service/util/context.h"

typedef struct AttachJob AttachJob;
typedef struct AttachKind AttachKind;

/* Called from the loop at the end of an operation, with 0, a refusal or a negative errno. A failed
 * opening leaves nothing behind. */
typedef void (*AttachJobDone)(void *userdata, int r, const Refusal *why);

/* What is opened, which is a->what. */
struct AttachKind {
        /* Before the process is opened, or the whole tree if tree is given. NULL: there is nothing
         * to check. */
        int (*check)(AttachJob *a, const ReaderTree *tree, Refusal *why);

        /* Opens these threads, of these processes (NULL: all of the target), disabled; those that
         * have ended are left out. On failure all is as before. */
        int (*open)(AttachJob *a, const pid_t *tids, const pid_t *pids, size_t n_tids,
                    Refusal *why);

        void (*undo)(AttachJob *a);   /* closes what open() has opened, if anything */
        void (*accept)(AttachJob *a); /* it stays; may be NULL */
};

struct AttachJob {
        Context *context;
        const AttachKind *kind; /* NULL: no job */
        void *what;
        Peer *peer; /* whose rights count; borrowed */
        AttachJobDone done;
        void *userdata;

        pid_t pid; /* the target; 0: the proof will tell */
        int pidfd;
        SharedFd *process; /* the same, for all that is attached to it */
        int procfd;        /* the proof, -1: there is none, or it was looked at */
        TraceClaim claim;
        bool descendants;

        bool inspected;
        ProcessFacts facts;    /* once inspected */
        char untraceable[256]; /* why the peer needs count-other, or empty */
        bool hidden;           /* the peer must not learn that it exists */
        bool allowed;          /* for the caller to set: count-other was granted */

        ReaderJob *job;
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

/* Opens the target's threads, disabled, and accepts them. 0: it is done; -EINPROGRESS: done will be
 * called. Refusals are those of the kind, and:
 *
 * - REFUSAL_BUSY: the target creates threads too fast, or a process of the tree is traced.
 * - REFUSAL_NOT_PERMITTED: a process of the tree may not be traced, or the target has changed
 *   meanwhile. In the first case untraceable names it, and the caller may ask for count-other and
 *   open again.
 * - REFUSAL_NO_SUCH_PROCESS: the target has ended. */
int attach_job_open(AttachJob *a, Refusal *why);

/* Makes process, from the pidfd. -ENOMEM, -EMFILE and the like. */
int attach_job_share(AttachJob *a);

/* Forgets the target and undoes an operation under way. */
void attach_job_done(AttachJob *a);

/* Whether the trace rule applies to what is opened. */
bool attach_job_is_guarded(const AttachJob *a);

/* Whose every process is that is counted; ASKED_NOBODY: of several users, or nobody has looked. */
uid_t attach_job_target_uid(const AttachJob *a);

int attach_job_refuse_ended(const AttachJob *a, Refusal *why);
