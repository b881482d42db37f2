/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the helper has been asked: the jobs that wait for it, those that are with it, and how many
 * of each kind may be. A scan takes along everybody who waits for one. For a client's user one tree
 * is stopped at a time: two that overlap would find each other traced.
 */

#include <sys/queue.h>

#include "service/sibling/reader-wire.h"
#include "service/sibling/reader.h"

typedef struct ReaderQueue ReaderQueue;
typedef struct ReaderSlot ReaderSlot;
typedef TAILQ_HEAD(ReaderJobList, ReaderJob) ReaderJobList;

#define READER_SLOTS_MAX (READER_INSPECTS_MAX + READER_SCANS_MAX + READER_SEIZES_MAX)

struct ReaderJob {
        TAILQ_ENTRY(ReaderJob) entry;
        ReaderJobList *list; /* it stands in */
        int error;           /* why it is among the failed */
        union {
                ReaderInspected inspected;
                ReaderScanned scanned;
                ReaderSeized seized;
        } done;
        void *userdata;
        int pidfd;
        int release[2]; /* of a seizure: what the helper polls, what lets go when it is closed */
        ReaderShared *shared;
        size_t shared_size;
        ReaderRequest request;
};

/* A request that is with the helper, until it has ended there; its job may be gone before. */
struct ReaderSlot {
        uint64_t id; /* 0: free */
        uint32_t op;
        uint32_t uid;
};

struct ReaderQueue {
        int fd;
        bool gone; /* the helper: nothing is taken any more */
        uint64_t last_id;
        ReaderSlot slots[READER_SLOTS_MAX];
        ReaderJobList waiting[_READER_OP_MAX];
        ReaderJobList flying;
        ReaderJobList failed; /* could not be sent; their callers are to be told from the loop */
        ReaderJobList standing;
};

void reader_queue_init(ReaderQueue *q);
void reader_queue_done(ReaderQueue *q); /* forgets all jobs */

/* -ENOMEM, -EMFILE, -EPIPE. The caller sets done and userdata before he appends it. */
int reader_job_new(ReaderQueue *q, ReaderOp op, int pidfd, const SeizeRule *rule, ReaderJob **ret);
ReaderJob *reader_job_free(ReaderJob *job);
void reader_job_move(ReaderJob *job, ReaderJobList *list);

/* Calls back with a failure; the job ends. */
void reader_job_fail(ReaderJob *job, int r, const Refusal *why);

/* Sends what may be sent. False: the socket is full, try again when it is not. */
bool reader_queue_send(ReaderQueue *q);

/* The job with that id that is with the helper, or NULL. */
ReaderJob *reader_queue_find(const ReaderQueue *q, uint64_t id);

/* The request has ended. */
void reader_queue_ended(ReaderQueue *q, uint64_t id);
