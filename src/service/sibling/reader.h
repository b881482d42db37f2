/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The sibling process that reads other processes, so that the process which parses the bus has
 * neither CAP_SYS_PTRACE nor CAP_DAC_READ_SEARCH.
 *
 * It is forked before the capabilities are dropped and lives as long as the service. Requests and
 * answers are single messages on a SOCK_SEQPACKET pair; scans and attachments run in a child of
 * the helper each, so that a slow one holds up nobody. When the helper dies the service cannot get
 * it back (the capabilities are gone) and ends, to be started anew.
 *
 * Nothing here waits. So many requests are with the helper at a time; the others stand in a queue,
 * which has no limit: whose clients ask must count what they ask.
 */

#include <systemd/sd-event.h>

#include "perf/process/process.h"
#include "perf/process/seize.h"
#include "perf/process/users.h"

typedef struct Reader Reader;
typedef struct ReaderJob ReaderJob;
typedef struct ReaderTree ReaderTree;

#define READER_SCAN_MAX_USEC                                                                       \
        (10 * USEC_PER_SEC) /* a scan that takes longer ends with what it has */
#define READER_SEIZE_MAX_USEC (2 * USEC_PER_SEC) /* longest bound for a seized tree */

/* Forks the helper. Call it before any thread, bus or event loop exists. */
int reader_fork(Reader **ret);

/* Lets answers arrive on the loop. died is called once should the helper go away, after every job
 * has been answered with -EPIPE. */
int reader_attach_event(Reader *h, sd_event *event, void (*died)(void *userdata), void *userdata);

/* Ends the helper. Jobs that were not answered are forgotten, no done is called, and trees that
 * stand are let go: handles of jobs are of no use any more. Not to be called from a done. NULL is
 * fine. */
Reader *reader_free(Reader *h);
DEFINE_CLEANUP(Reader *, reader_free)

/* For the next three: done is called exactly once, from the loop, unless the job is cancelled
 * before: r is 0, a refusal (why is filled) or a negative errno, and what comes with it is gone
 * when done returns. The job ends with it. ret may be NULL. Fails with -ENOMEM, -EMFILE, -EPIPE
 * (the helper has gone); then there is no job. */

/* Asks for the facts of the process behind pidfd (duplicated; the caller keeps his). */
typedef void (*ReaderInspected)(void *userdata, int r, const ProcessFacts *facts,
                                const Refusal *why);
int reader_inspect(Reader *h, int pidfd, ReaderInspected done, void *userdata, ReaderJob **ret);

/* Asks who has perf events, the service and its helper left out. Who asks while others wait for a
 * scan to begin shares theirs. complete is false when READER_SCAN_MAX_USEC was over (then users
 * holding mappings alone may be missing) or a process more than USERS_MAX had them. */
typedef void (*ReaderScanned)(void *userdata, int r, const User *users, size_t n_users,
                              bool complete);
int reader_scan(Reader *h, ReaderScanned done, void *userdata, ReaderJob **ret);

/* A tree that stands (perf/process/seize.h): open what is to be opened, then reader_release(). */
struct ReaderTree {
        const ProcessFacts *processes; /* as they are now; the tracer is the helper */
        size_t n_processes;
        const SeizedThread *threads;
        size_t n_threads;
};

/* Stops the tree below pidfd for at most bound_usec from when the helper begins, as long as the
 * opening of events takes. With r 0 the job does not end and the tree belongs to the caller, until
 * he gives it to reader_release(). One uid's trees are stopped one after another, for two
 * that overlap would find each other traced. Of rule->gids the first 1,024 count. */
typedef void (*ReaderSeized)(void *userdata, int r, const ReaderTree *tree, const Refusal *why);
int reader_seize(Reader *h, int pidfd, const SeizeRule *rule, uint64_t bound_usec,
                 ReaderSeized done, void *userdata, ReaderJob **ret);

/* Lets the tree go and ends the job. 0: it has stood until now. REFUSAL_BUSY: time was over before,
 * the tree may have grown, everything that was opened on it must be closed again. May be called
 * within done. */
int reader_release(ReaderJob *job, Refusal *why);

/* Whether who traces a process lets go soon, for it is one of the helper's own, or has ended by
 * now. */
bool reader_frees(const Reader *h, pid_t tracer);

/* The answer is not wanted any more; done will not be called. Lets go of a tree. NULL is fine.
 * Returns NULL. */
ReaderJob *reader_job_cancel(ReaderJob *job);
