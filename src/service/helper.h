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

#include "perf/process.h"
#include "perf/seize.h"
#include "perf/users.h"

typedef struct Helper Helper;
typedef struct HelperJob HelperJob;
typedef struct HelperTree HelperTree;

#define HELPER_SCAN_MAX_USEC                                                                       \
        (10 * USEC_PER_SEC) /* a scan that takes longer ends with what it has */
#define HELPER_SEIZE_MAX_USEC (2 * USEC_PER_SEC) /* longest bound for a seized tree */

/* Forks the helper. Call it before any thread, bus or event loop exists. */
int helper_fork(Helper **ret);

/* Lets answers arrive on the loop. died is called once should the helper go away, after every job
 * has been answered with -EPIPE. */
int helper_attach_event(Helper *h, sd_event *event, void (*died)(void *userdata), void *userdata);

/* Ends the helper. Jobs that were not answered are forgotten, no done is called, and trees that
 * stand are let go: handles of jobs are of no use any more. Not to be called from a done. NULL is
 * fine. */
Helper *helper_free(Helper *h);
DEFINE_CLEANUP(Helper *, helper_free)

/* For the next three: done is called exactly once, from the loop, unless the job is cancelled
 * before: r is 0, a refusal (why is filled) or a negative errno, and what comes with it is gone
 * when done returns. The job ends with it. ret may be NULL. Fails with -ENOMEM, -EMFILE, -EPIPE
 * (the helper has gone); then there is no job. */

/* Asks for the facts of the process behind pidfd (duplicated; the caller keeps his). */
typedef void (*HelperInspected)(void *userdata, int r, const ProcessFacts *facts,
                                const Refusal *why);
int helper_inspect(Helper *h, int pidfd, HelperInspected done, void *userdata, HelperJob **ret);

/* Asks who has perf events, the service and its helper left out. Who asks while others wait for a
 * scan to begin shares theirs. complete is false when HELPER_SCAN_MAX_USEC was over (then users
 * holding mappings alone may be missing) or a process more than USERS_MAX had them. */
typedef void (*HelperScanned)(void *userdata, int r, const User *users, size_t n_users,
                              bool complete);
int helper_scan(Helper *h, HelperScanned done, void *userdata, HelperJob **ret);

/* A tree that stands (perf/seize.h): open what is to be opened, then helper_release(). */
struct HelperTree {
        const ProcessFacts *processes; /* as they are now; the tracer is the helper */
        size_t n_processes;
        const SeizedThread *threads;
        size_t n_threads;
};

/* Stops the tree below pidfd for at most bound_usec from when the helper begins, as long as the
 * opening of events takes. With r 0 the job does not end and the tree belongs to the caller, until
 * he gives it to helper_release(). One uid's trees are stopped one after another, for two
 * that overlap would find each other traced. Of rule->gids the first 1,024 count. */
typedef void (*HelperSeized)(void *userdata, int r, const HelperTree *tree, const Refusal *why);
int helper_seize(Helper *h, int pidfd, const SeizeRule *rule, uint64_t bound_usec,
                 HelperSeized done, void *userdata, HelperJob **ret);

/* Lets the tree go and ends the job. 0: it has stood until now. REFUSAL_BUSY: time was over before,
 * the tree may have grown, everything that was opened on it must be closed again. May be called
 * within done. */
int helper_release(HelperJob *job, Refusal *why);

/* Whether who traces a process lets go soon, for it is one of the helper's own, or has ended by
 * now. */
bool helper_frees(const Helper *h, pid_t tracer);

/* The answer is not wanted any more; done will not be called. Lets go of a tree. NULL is fine.
 * Returns NULL. */
HelperJob *helper_job_cancel(HelperJob *job);
