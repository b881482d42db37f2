/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the helper has been asked: the jobs that wait for it, those that are with it, and how many
 * of each kind may be. A scan takes along everybody who waits for one. For a client's user one tree
 * is stopped at a time: two that overlap would find each other traced.
 */

#include <sys/queue.h>

#include "service/helper-wire.h"
#include "service/helper.h"

typedef struct HelperQueue HelperQueue;
typedef struct HelperSlot HelperSlot;
typedef TAILQ_HEAD(HelperJobList, HelperJob) HelperJobList;

#define HELPER_SLOTS_MAX (HELPER_INSPECTS_MAX + HELPER_SCANS_MAX + HELPER_SEIZES_MAX)

struct HelperJob {
        TAILQ_ENTRY(HelperJob) entry;
        HelperJobList *list; /* it stands in */
        int error;           /* why it is among the failed */
        union {
                HelperInspected inspected;
                HelperScanned scanned;
                HelperSeized seized;
        } done;
        void *userdata;
        int pidfd;
        int release[2]; /* of a seizure: what the helper polls, what lets go when it is closed */
        HelperShared *shared;
        size_t shared_size;
        HelperRequest request;
};

/* A request that is with the helper, until it has ended there; its job may be gone before. */
struct HelperSlot {
        uint64_t id; /* 0: free */
        uint32_t op;
        uint32_t uid;
};

struct HelperQueue {
        int fd;
        bool gone; /* the helper: nothing is taken any more */
        uint64_t last_id;
        HelperSlot slots[HELPER_SLOTS_MAX];
        HelperJobList waiting[_HELPER_OP_MAX];
        HelperJobList flying;
        HelperJobList failed; /* could not be sent; their callers are to be told from the loop */
        HelperJobList standing;
};

void helper_queue_init(HelperQueue *q);
void helper_queue_done(HelperQueue *q); /* forgets all jobs */

/* -ENOMEM, -EMFILE, -EPIPE. The caller sets done and userdata before he appends it. */
int helper_job_new(HelperQueue *q, HelperOp op, int pidfd, const SeizeRule *rule, HelperJob **ret);
HelperJob *helper_job_free(HelperJob *job);
void helper_job_move(HelperJob *job, HelperJobList *list);

/* Calls back with a failure; the job ends. */
void helper_job_fail(HelperJob *job, int r, const Refusal *why);

/* Sends what may be sent. False: the socket is full, try again when it is not. */
bool helper_queue_send(HelperQueue *q);

/* The job with that id that is with the helper, or NULL. */
HelperJob *helper_queue_find(const HelperQueue *q, uint64_t id);

/* The request has ended. */
void helper_queue_ended(HelperQueue *q, uint64_t id);
