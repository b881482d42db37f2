/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader-queue.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

static const unsigned slots_max[_READER_OP_MAX] = {
        [READER_INSPECT] = READER_INSPECTS_MAX, [READER_PROVE] = READER_PROVES_MAX,
        [READER_SCAN] = READER_SCANS_MAX,       [READER_SEIZE] = READER_SEIZES_MAX,
        [READER_BROKER] = READER_BROKERS_MAX,   [READER_PING] = READER_PINGS_MAX,
};

void reader_job_move(ReaderJob *job, ReaderJobList *list) {
        if (job->list)
                TAILQ_REMOVE(job->list, job, entry);
        job->list = list;
        if (list)
                TAILQ_INSERT_TAIL(list, job, entry);
}

ReaderJob *reader_job_free(ReaderJob *job) {
        if (!job)
                return NULL;
        reader_job_move(job, NULL);
        if (job->turn.user)
                fairqueue_remove(&job->queue->seizes, &job->turn);
        if (job->shared)
                (void) munmap(job->shared, job->shared_size);
        close_fd(job->fds[0]);
        close_fd(job->fds[1]);
        close_fd(job->release);
        free(job);
        return NULL;
}
DEFINE_CLEANUP(ReaderJob *, reader_job_free)

static int job_set_rule(ReaderJob *job, const SeizeRule *rule, size_t n_gids) {
        int ends[2];

        job->request.any = rule->any;
        job->request.uid = rule->uid;
        job->request.n_gids = (uint32_t) n_gids;
        if (n_gids > 0)
                memcpy(job->request.gids, rule->gids, n_gids * sizeof(gid_t));
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        job->fds[1] = ends[0];
        job->release = ends[1];
        return 0;
}

static int job_set_fds(ReaderJob *job, const int fds[2]) {
        for (size_t i = 0; i < 2 && fds[i] >= 0; i++) {
                job->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
                if (job->fds[i] < 0)
                        return -errno;
        }
        return 0;
}

int reader_job_new(ReaderQueue *q, ReaderOp op, const int fds[2], const SeizeRule *rule,
                   ReaderDone done, void *userdata, ReaderJob **ret) {
        size_t n_gids = rule ? MIN(rule->n_gids, (size_t) READER_GIDS_MAX) : 0;
        _cleanup_(reader_job_freep) ReaderJob *job = NULL;
        int r;

        if (q->gone)
                return -EPIPE;
        job = calloc(1, offsetof(ReaderJob, request) + READER_REQUEST_SIZE(n_gids));
        if (!job)
                return -ENOMEM;
        job->fds[0] = job->fds[1] = job->release = -1;
        job->queue = q;
        job->done = done;
        job->userdata = userdata;
        job->request.op = op;
        r = job_set_fds(job, fds);
        if (r == 0 && rule)
                r = job_set_rule(job, rule, n_gids);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(job);
        return 0;
}

void reader_job_fail(ReaderJob *job, int r, const Refusal *why) {
        ReaderJob copy = *job;

        reader_job_free(job);
        if (copy.request.op == READER_INSPECT)
                copy.done.inspected(copy.userdata, r, NULL, false, why);
        else if (copy.request.op == READER_PROVE)
                copy.done.proven(copy.userdata, r, -1, why);
        else if (copy.request.op == READER_SCAN)
                copy.done.scanned(copy.userdata, r, NULL, 0, false);
        else if (copy.request.op == READER_BROKER || copy.request.op == READER_PING)
                copy.done.ended(copy.userdata, r);
        else
                copy.done.seized(copy.userdata, r, NULL, why);
}

static ReaderSlot *slot_find(const ReaderQueue *q, uint64_t id) {
        for (size_t i = 0; i < READER_REQUESTS_MAX; i++)
                if (q->slots[i].id == id)
                        return (ReaderSlot *) &q->slots[i];
        return NULL;
}

/* Whether the reader may work on one more of that kind. */
static bool slot_is_free(const ReaderQueue *q, ReaderOp op) {
        unsigned n = 0;

        for (size_t i = 0; i < READER_REQUESTS_MAX; i++)
                n += q->slots[i].id != 0 && q->slots[i].op == op;
        return n < slots_max[op];
}

int reader_queue_add(ReaderQueue *q, ReaderJob *job) {
        int r = 0;

        if (job->request.op == READER_SEIZE)
                r = fairqueue_add(&q->seizes, &job->turn, job->request.uid);
        if (r == 0)
                reader_job_move(job, &q->waiting[job->request.op]);
        return r;
}

/* The next that may be sent; a seizure has its turn from then on. */
static ReaderJob *waiting_next(ReaderQueue *q, ReaderOp op) {
        FairItem *item;

        if (!slot_is_free(q, op))
                return NULL;
        if (op != READER_SEIZE)
                return TAILQ_FIRST(&q->waiting[op]);
        item = fairqueue_next(&q->seizes);
        return item ? container_of(item, ReaderJob, turn) : NULL;
}

/* False: the socket is full. */
static bool job_send(ReaderQueue *q, ReaderJob *job) {
        const ReaderOp op = job->request.op;
        int r;

        job->request.id = ++q->last_id;
        r = reader_request_send(q->fd, &job->request, job->fds);
        if (r == -EAGAIN || r == -EPIPE || r == -ECONNRESET) {
                if (job->turn.user)
                        fairqueue_return(&q->seizes, &job->turn);
                return false; /* the loop notices that the reader has died */
        }
        if (r < 0) {
                fairqueue_remove(&q->seizes, &job->turn);
                job->error = r;
                reader_job_move(job, &q->failed);
                return true;
        }
        /* the turn lasts until the request has ended, whatever becomes of the job */
        *slot_find(q, 0) = (ReaderSlot){ job->request.id, op, job->turn };
        job->turn = (FairItem){};
        job->fds[0] = close_fd(job->fds[0]);
        job->fds[1] = close_fd(job->fds[1]);
        reader_job_move(job, &q->flying);
        for (ReaderJob *other; op == READER_SCAN && (other = TAILQ_FIRST(&q->waiting[op]));) {
                other->request.id = job->request.id;
                reader_job_move(other, &q->flying);
        }
        return true;
}

bool reader_queue_send(ReaderQueue *q) {
        for (ReaderOp op = 0; op < _READER_OP_MAX; op++)
                for (ReaderJob *job; (job = waiting_next(q, op));)
                        if (!job_send(q, job))
                                return false;
        return true;
}

bool reader_queue_waits(const ReaderQueue *q) {
        const ReaderJob *job;

        TAILQ_FOREACH (job, &q->flying, entry)
                if (job->request.op != READER_BROKER)
                        return true;
        for (int op = 0; op < _READER_OP_MAX; op++)
                if (!TAILQ_EMPTY(&q->waiting[op]))
                        return true;
        return false;
}

ReaderJob *reader_queue_find(const ReaderQueue *q, uint64_t id) {
        ReaderJob *job;

        TAILQ_FOREACH (job, &q->flying, entry) {
                if (job->request.id == id)
                        return job;
        }
        return NULL;
}

void reader_queue_ended(ReaderQueue *q, uint64_t id) {
        ReaderSlot *s = id != 0 ? slot_find(q, id) : NULL;

        if (!s)
                return;
        fairqueue_remove(&q->seizes, &s->turn);
        *s = (ReaderSlot){};
}

void reader_queue_init(ReaderQueue *q) {
        *q = (ReaderQueue){ .fd = -1 };
        fairqueue_init(&q->seizes, 1, READER_SEIZES_MAX, UINT_MAX);
        TAILQ_INIT(&q->flying);
        TAILQ_INIT(&q->failed);
        TAILQ_INIT(&q->standing);
        for (int op = 0; op < _READER_OP_MAX; op++)
                TAILQ_INIT(&q->waiting[op]);
}

static void list_free(ReaderJobList *list) {
        while (!TAILQ_EMPTY(list))
                reader_job_free(TAILQ_FIRST(list));
}

void reader_queue_done(ReaderQueue *q) {
        list_free(&q->flying);
        list_free(&q->failed);
        list_free(&q->standing);
        for (int op = 0; op < _READER_OP_MAX; op++)
                list_free(&q->waiting[op]);
        for (size_t i = 0; i < READER_REQUESTS_MAX; i++)
                fairqueue_remove(&q->seizes, &q->slots[i].turn);
        q->fd = close_fd(q->fd);
}
