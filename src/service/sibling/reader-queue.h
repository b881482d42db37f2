/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The jobs of the reader: those that are queued, and those that the reader works on, of which there
 * is a limited number of each kind. All jobs that are queued for a scan share the next one. Users
 * take turns with seizures, one tree each: a tree may stand for two seconds (reader_seize()).
 */

#include <sys/queue.h>

#include "service/sibling/reader-job.h"
#include "service/sibling/reader-wire.h"
#include "service/util/fairqueue.h"

typedef union ReaderDone ReaderDone;
typedef struct ReaderQueue ReaderQueue;
typedef struct ReaderSlot ReaderSlot;
typedef TAILQ_HEAD(ReaderJobList, ReaderJob) ReaderJobList;

union ReaderDone {
        ReaderInspected inspected;
        ReaderProven proven;
        ReaderScanned scanned;
        ReaderSeized seized;
        ReaderEnded ended;
};

struct ReaderJob {
        TAILQ_ENTRY(ReaderJob) entry;
        ReaderQueue *queue;
        ReaderJobList *list; /* that it is in */
        int error;           /* why it is in failed */
        FairItem turn;       /* of a seizure that is queued */
        ReaderDone done;
        void *userdata;
        int fds[2];  /* that go with the request; the first -1 ends the list */
        int release; /* closing it lets go of a tree: the reader polls the pipe's other end */
        ReaderShared *shared;
        size_t shared_size;
        ReaderRequest request;
};

/* A request that the reader works on. Its job may be cancelled before it ends. */
struct ReaderSlot {
        uint64_t id; /* 0: free */
        uint32_t op;
        FairItem turn; /* of a seizure */
};

struct ReaderQueue {
        int fd;
        bool gone; /* the reader has died: no new jobs */
        uint64_t last_id;
        ReaderSlot slots[READER_REQUESTS_MAX];
        ReaderJobList waiting[_READER_OP_MAX];
        FairQueue seizes;       /* which of those in waiting[READER_SEIZE] is next */
        ReaderJobList flying;   /* sent, not answered */
        ReaderJobList failed;   /* not sent; done is still to be called, from the loop */
        ReaderJobList standing; /* trees that are stopped */
};

void reader_queue_init(ReaderQueue *q);
void reader_queue_done(ReaderQueue *q); /* ends all jobs, without an answer */

/* Duplicates fds. rule: for READER_SEIZE, else NULL. -ENOMEM, -EMFILE, -EPIPE. */
int reader_job_new(ReaderQueue *q, ReaderOp op, const int fds[2], const SeizeRule *rule,
                   ReaderDone done, void *userdata, ReaderJob **ret);
ReaderJob *reader_job_free(ReaderJob *job);
void reader_job_move(ReaderJob *job, ReaderJobList *list);

/* Queues it; -ENOMEM. */
int reader_queue_add(ReaderQueue *q, ReaderJob *job);

/* Calls done with a failure and frees the job. */
void reader_job_fail(ReaderJob *job, int r, const Refusal *why);

/* Sends what may be sent. False: the socket is full; call again when it is writable. */
bool reader_queue_send(ReaderQueue *q);

/* Whether an answer is awaited. A broker's is not: it may take as long as a program runs. */
bool reader_queue_waits(const ReaderQueue *q);

/* A job of that request that is not answered yet, or NULL. */
ReaderJob *reader_queue_find(const ReaderQueue *q, uint64_t id);

/* The request has ended: its slot is free. */
void reader_queue_ended(ReaderQueue *q, uint64_t id);
