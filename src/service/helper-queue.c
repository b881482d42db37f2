/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helper-queue.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static const unsigned slots_max[_HELPER_OP_MAX] = {
        [HELPER_INSPECT] = HELPER_INSPECTS_MAX,
        [HELPER_SCAN] = HELPER_SCANS_MAX,
        [HELPER_SEIZE] = HELPER_SEIZES_MAX,
};

void helper_job_move(HelperJob *job, HelperJobList *list) {
        if (job->list)
                TAILQ_REMOVE(job->list, job, entry);
        job->list = list;
        if (list)
                TAILQ_INSERT_TAIL(list, job, entry);
}

HelperJob *helper_job_free(HelperJob *job) {
        if (!job)
                return NULL;
        helper_job_move(job, NULL);
        if (job->shared)
                (void) munmap(job->shared, job->shared_size);
        close_fd(job->pidfd);
        close_fd(job->release[0]);
        close_fd(job->release[1]);
        free(job);
        return NULL;
}
DEFINE_CLEANUP(HelperJob *, helper_job_free)

int helper_job_new(HelperQueue *q, HelperOp op, int pidfd, const SeizeRule *rule, HelperJob **ret) {
        size_t n_gids = rule ? MIN(rule->n_gids, (size_t) HELPER_GIDS_MAX) : 0;
        _cleanup_(helper_job_freep) HelperJob *job = NULL;

        if (q->gone)
                return -EPIPE;
        job = calloc(1, offsetof(HelperJob, request) + HELPER_REQUEST_SIZE(n_gids));
        if (!job)
                return -ENOMEM;
        job->pidfd = job->release[0] = job->release[1] = -1;
        job->request.op = op;
        if (pidfd >= 0) {
                job->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
                if (job->pidfd < 0)
                        return -errno;
        }
        if (rule) {
                job->request.any = rule->any;
                job->request.uid = rule->uid;
                job->request.n_gids = (uint32_t) n_gids;
                if (n_gids > 0)
                        memcpy(job->request.gids, rule->gids, n_gids * sizeof(gid_t));
                if (pipe2(job->release, O_CLOEXEC) < 0)
                        return -errno;
        }
        *ret = TAKE_PTR(job);
        return 0;
}

void helper_job_fail(HelperJob *job, int r, const Refusal *why) {
        HelperJob copy = *job;

        helper_job_free(job);
        switch ((HelperOp) copy.request.op) {
        case HELPER_INSPECT:
                copy.done.inspected(copy.userdata, r, NULL, why);
                break;
        case HELPER_SCAN:
                copy.done.scanned(copy.userdata, r, NULL, 0, false);
                break;
        case HELPER_SEIZE:
                copy.done.seized(copy.userdata, r, NULL, why);
                break;
        case _HELPER_OP_MAX:
                break;
        }
}

static HelperSlot *slot_find(const HelperQueue *q, uint64_t id) {
        for (size_t i = 0; i < HELPER_SLOTS_MAX; i++)
                if (q->slots[i].id == id)
                        return (HelperSlot *) &q->slots[i];
        return NULL;
}

/* Whether one more of that kind, for that user, may be with the helper. */
static bool slot_is_free(const HelperQueue *q, HelperOp op, uint32_t uid) {
        unsigned n = 0;

        for (size_t i = 0; i < HELPER_SLOTS_MAX; i++) {
                const HelperSlot *s = &q->slots[i];

                if (s->id == 0 || s->op != op)
                        continue;
                if (op == HELPER_SEIZE && s->uid == uid)
                        return false;
                n++;
        }
        return n < slots_max[op];
}

/* The next that may be sent. Those whose user has his tree already are stepped over. */
static HelperJob *waiting_next(const HelperQueue *q, HelperOp op) {
        HelperJob *job;

        TAILQ_FOREACH (job, &q->waiting[op], entry) {
                if (slot_is_free(q, op, job->request.uid))
                        return job;
                if (op != HELPER_SEIZE)
                        break; /* it is the same for all of them */
        }
        return NULL;
}

/* False: the socket is full. */
static bool job_send(HelperQueue *q, HelperJob *job) {
        const HelperOp op = job->request.op;
        int r;

        job->request.id = ++q->last_id;
        r = helper_request_send(q->fd, &job->request, (int[]){ job->pidfd, job->release[0] });
        if (r == -EAGAIN || r == -EPIPE || r == -ECONNRESET)
                return false; /* that a helper has gone is noticed by the loop */
        if (r < 0) {
                job->error = r;
                helper_job_move(job, &q->failed);
                return true;
        }
        *slot_find(q, 0) = (HelperSlot){ job->request.id, op, job->request.uid };
        job->pidfd = close_fd(job->pidfd);
        job->release[0] = close_fd(job->release[0]);
        helper_job_move(job, &q->flying);
        for (HelperJob *other; op == HELPER_SCAN && (other = TAILQ_FIRST(&q->waiting[op]));) {
                other->request.id = job->request.id;
                helper_job_move(other, &q->flying);
        }
        return true;
}

bool helper_queue_send(HelperQueue *q) {
        for (HelperOp op = 0; op < _HELPER_OP_MAX; op++)
                for (HelperJob *job; (job = waiting_next(q, op));)
                        if (!job_send(q, job))
                                return false;
        return true;
}

HelperJob *helper_queue_find(const HelperQueue *q, uint64_t id) {
        HelperJob *job;

        TAILQ_FOREACH (job, &q->flying, entry) {
                if (job->request.id == id)
                        return job;
        }
        return NULL;
}

void helper_queue_ended(HelperQueue *q, uint64_t id) {
        HelperSlot *s = id != 0 ? slot_find(q, id) : NULL;

        if (s)
                *s = (HelperSlot){};
}

void helper_queue_init(HelperQueue *q) {
        *q = (HelperQueue){ .fd = -1 };
        TAILQ_INIT(&q->flying);
        TAILQ_INIT(&q->failed);
        TAILQ_INIT(&q->standing);
        for (int op = 0; op < _HELPER_OP_MAX; op++)
                TAILQ_INIT(&q->waiting[op]);
}

static void list_free(HelperJobList *list) {
        while (!TAILQ_EMPTY(list))
                helper_job_free(TAILQ_FIRST(list));
}

void helper_queue_done(HelperQueue *q) {
        list_free(&q->flying);
        list_free(&q->failed);
        list_free(&q->standing);
        for (int op = 0; op < _HELPER_OP_MAX; op++)
                list_free(&q->waiting[op]);
        q->fd = close_fd(q->fd);
}
