/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The sibling process that reads other processes, so that the process which parses the bus has
 * neither CAP_SYS_PTRACE nor CAP_DAC_READ_SEARCH.
 *
 * It is forked before the capabilities are dropped and lives as long as the service. Requests and
 * answers are single messages on a SOCK_SEQPACKET pair. Scans and seizures each run in a child of
 * the reader, so that a slow one delays nobody. When the reader dies the service cannot fork
 * another one, for the capabilities are gone; it ends and is started anew. A reader that does not
 * answer a request for READER_BOUND_USEC, though it needs no time to say that it runs, is killed.
 *
 * No call here waits. The reader works on a limited number of requests; the others are queued,
 * without a limit: callers bound what their clients may ask.
 */

#include <systemd/sd-event.h>

#include "service/sibling/reader-job.h"

typedef struct Reader Reader;

#define READER_BOUND_USEC (6 * USEC_PER_SEC) /* as the opener's */

/* Forks the reader. Call it before any thread, bus or event loop exists. */
int reader_fork(Reader **ret);

/* Lets answers arrive on the loop. died is called once if the reader goes away, after every job has
 * been answered with -EPIPE. */
int reader_attach_event(Reader *reader, sd_event *event, void (*died)(void *userdata),
                        void *userdata);

/* Ends the reader. All jobs end without an answer, their handles are invalid, and seized trees run
 * on. Not to be called from a done. NULL is fine. */
Reader *reader_free(Reader *reader);
DEFINE_CLEANUP(Reader *, reader_free)

/* For the next four: done is called exactly once, from the loop, unless the job is cancelled
 * before; the job ends with it. ret may be NULL. On -ENOMEM, -EMFILE and -EPIPE (the reader is
 * gone) there is no job. */

/* Reads the facts of the process behind pidfd, and whether the process behind asker (-1: nobody)
 * is our neighbour. Descriptors are duplicated. */
int reader_inspect(Reader *reader, int pidfd, int asker, ReaderInspected done, void *userdata,
                   ReaderJob **ret);

/* Which process a client's descriptor proves the right to (perf/process/proof.h): that behind pidfd
 * or nobody, or, where pidfd is -1, whichever it is. done gets its pidfd, borrowed. */
int reader_prove(Reader *reader, int procfd, int pidfd, ReaderProven done, void *userdata,
                 ReaderJob **ret);

/* Finds the processes that have perf events, except the service and the reader. Jobs that wait for
 * a scan to begin share it. complete is false when READER_SCAN_MAX_USEC was over (processes that
 * have only a mapping may be missing) or a process more than USERS_MAX had events. */
int reader_scan(Reader *reader, ReaderScanned done, void *userdata, ReaderJob **ret);

/* Stops the tree below pidfd for at most bound_usec, from when the reader begins. With r 0 the job
 * does not end with done: the caller opens its events and calls reader_release(). Trees of one uid
 * are stopped one after another: of two that overlap each would find the other tracing it. Of
 * rule->gids the first 1,024 count. */
int reader_seize(Reader *reader, int pidfd, const SeizeRule *rule, uint64_t bound_usec,
                 ReaderSeized done, void *userdata, ReaderJob **ret);

/* Starts the worker of a broker (broker/worker.h), with copies of both descriptors. done is called
 * when it has ended, and so after the job is cancelled not any more. */
int reader_broker(Reader *reader, int socket, int lease, ReaderEnded done, void *userdata,
                  ReaderJob **ret);

/* Lets the tree run on and ends the job. 0: it was stopped until now. REFUSAL_BUSY: it was not, and
 * may have grown; close everything that was opened on it. May be called from done. */
int reader_release(ReaderJob *job, Refusal *why);

/* Whether that tracer of a process will let go soon: it is a child of the reader, or has ended. */
bool reader_frees(const Reader *reader, pid_t tracer);

/* Ends the job without an answer, and lets go of its tree. NULL is fine. Returns NULL. */
ReaderJob *reader_job_cancel(ReaderJob *job);
