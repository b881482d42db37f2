/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "helper-process.h"

#define REPLIES_PER_TURN 16 /* then other sources of the loop have theirs */

typedef TAILQ_HEAD(JobList, HelperJob) JobList;

struct HelperJob {
        TAILQ_ENTRY(HelperJob) entry;
        Helper *helper;
        JobList *list; /* it stands in */
        int error;     /* why it is among the failed */
        union {
                HelperInspected inspected;
                HelperScanned scanned;
                HelperSeized seized;
        } done;
        void *userdata;
        int pidfd;
        int release[2]; /* of a seizure: what the helper polls, and what lets go when it is closed */
        HelperShared *shared;
        size_t shared_size;
        HelperRequest request;
};

struct Helper {
        pid_t pid;
        int fd;
        bool gone;
        uint64_t last_id;
        unsigned n_flying[_HELPER_OP_MAX];
        JobList waiting[_HELPER_OP_MAX], flying, failed, standing;
        sd_event_source *io, *defer;
        void (*died)(void *userdata);
        void *userdata;
};

static const unsigned flying_max[_HELPER_OP_MAX] = {
        [HELPER_INSPECT] = HELPER_INSPECTS_MAX,
        [HELPER_SCAN] = HELPER_SCANS_MAX,
        [HELPER_SEIZE] = HELPER_SEIZES_MAX,
};

int helper_fork(Helper **ret) {
        pid_t parent = getpid();
        sigset_t all, before;
        Helper *h;
        int pair[2];

        h = calloc(1, sizeof(Helper));
        if (!h)
                return -ENOMEM;
        TAILQ_INIT(&h->flying);
        TAILQ_INIT(&h->failed);
        TAILQ_INIT(&h->standing);
        for (int op = 0; op < _HELPER_OP_MAX; op++)
                TAILQ_INIT(&h->waiting[op]);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                free(h);
                return -errno;
        }
        h->fd = pair[0];
        /* no signal may find it before it has settled which ones to heed */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &before);
        h->pid = fork();
        if (h->pid == 0)
                helper_process_run(pair[1], parent);
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        close_fd(pair[1]);
        if (h->pid < 0 || fcntl(h->fd, F_SETFL, O_NONBLOCK) < 0) {
                int r = -errno;

                helper_free(h);
                return r;
        }
        *ret = h;
        return 0;
}

static void job_move(HelperJob *job, JobList *list) {
        if (job->list)
                TAILQ_REMOVE(job->list, job, entry);
        job->list = list;
        if (list)
                TAILQ_INSERT_TAIL(list, job, entry);
}

static HelperJob *job_free(HelperJob *job) {
        if (!job)
                return NULL;
        job_move(job, NULL);
        if (job->shared)
                (void) munmap(job->shared, job->shared_size);
        close_fd(job->pidfd);
        close_fd(job->release[0]);
        close_fd(job->release[1]);
        free(job);
        return NULL;
}
DEFINE_CLEANUP(HelperJob *, job_free)

static int job_new(Helper *h, HelperOp op, int pidfd, const SeizeRule *rule, HelperJob **ret) {
        size_t n_gids = rule ? MIN(rule->n_gids, (size_t) HELPER_GIDS_MAX) : 0;
        _cleanup_(job_freep) HelperJob *job = NULL;

        if (h->gone)
                return -EPIPE;
        job = calloc(1, offsetof(HelperJob, request) + HELPER_REQUEST_SIZE(n_gids));
        if (!job)
                return -ENOMEM;
        job->helper = h;
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

/* Calls back with a failure; the job ends. */
static void job_fail(HelperJob *job, int r, const Refusal *why) {
        HelperJob copy = *job;

        job_free(job);
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

/* Sends the first that waits, with everybody who can share its answer. -EAGAIN: the socket is full. */
static int queue_send_one(Helper *h, HelperOp op) {
        JobList *waiting = &h->waiting[op];
        HelperJob *first = TAILQ_FIRST(waiting);
        int r;

        first->request.id = ++h->last_id;
        r = helper_request_send(h->fd, &first->request,
                                (int[]){ first->pidfd, first->release[0] });
        if (r == -EAGAIN || r == -EPIPE || r == -ECONNRESET)
                return -EAGAIN; /* a helper that has gone is noticed by the loop */
        if (r < 0) {
                first->error = r;
                job_move(first, &h->failed);
                if (h->defer)
                        (void) sd_event_source_set_enabled(h->defer, SD_EVENT_ONESHOT);
                return 0;
        }
        first->pidfd = close_fd(first->pidfd);
        first->release[0] = close_fd(first->release[0]);
        job_move(first, &h->flying);
        h->n_flying[op]++;
        for (HelperJob *job; op == HELPER_SCAN && (job = TAILQ_FIRST(waiting));) {
                job->request.id = first->request.id;
                job_move(job, &h->flying);
        }
        return 0;
}

static void queues_send(Helper *h) {
        bool full = false;

        for (HelperOp op = 0; op < _HELPER_OP_MAX && !full; op++)
                while (!full && !TAILQ_EMPTY(&h->waiting[op]) && h->n_flying[op] < flying_max[op])
                        full = queue_send_one(h, op) < 0;
        if (h->io)
                (void) sd_event_source_set_io_events(h->io, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void job_submit(HelperJob *job, HelperJob **ret) {
        Helper *h = job->helper;

        job_move(job, &h->waiting[job->request.op]);
        if (ret)
                *ret = job;
        queues_send(h);
}

int helper_inspect(Helper *h, int pidfd, HelperInspected done, void *userdata, HelperJob **ret) {
        HelperJob *job = NULL;
        int r;

        r = job_new(h, HELPER_INSPECT, pidfd, NULL, &job);
        if (r < 0)
                return r;
        job->done.inspected = done;
        job->userdata = userdata;
        job_submit(job, ret);
        return 0;
}

int helper_scan(Helper *h, HelperScanned done, void *userdata, HelperJob **ret) {
        HelperJob *job = NULL;
        int r;

        r = job_new(h, HELPER_SCAN, -1, NULL, &job);
        if (r < 0)
                return r;
        job->done.scanned = done;
        job->userdata = userdata;
        job_submit(job, ret);
        return 0;
}

int helper_seize(Helper *h, int pidfd, const SeizeRule *rule, uint64_t bound_usec,
                 HelperSeized done, void *userdata, HelperJob **ret) {
        HelperJob *job = NULL;
        int r;

        r = job_new(h, HELPER_SEIZE, pidfd, rule, &job);
        if (r < 0)
                return r;
        job->done.seized = done;
        job->userdata = userdata;
        job->request.bound_usec = bound_usec;
        job_submit(job, ret);
        return 0;
}

HelperJob *helper_job_cancel(HelperJob *job) {
        /* What is with the helper goes on there; closing our end of the pipe lets a tree go. */
        return job_free(job);
}

int helper_release(HelperJob *job, Refusal *why) {
        uint32_t stands = HELPER_TREE_STANDS;
        struct pollfd p = { .fd = job->release[1] };
        bool stood;

        /* A child that has died closed its end before the kernel let its tree go. */
        stood = poll(&p, 1, 0) == 0 &&
                atomic_compare_exchange_strong(&job->shared->state, &stands, HELPER_TREE_RELEASED);
        job_free(job);
        if (stood)
                return 0;
        return refuse(why, REFUSAL_BUSY,
                      "the process and its descendants could not be kept still for long enough: "
                      "try again when the machine is less busy");
}

static HelperJob *flying_find(Helper *h, uint64_t id) {
        HelperJob *job;

        TAILQ_FOREACH(job, &h->flying, entry) {
                if (job->request.id == id)
                        return job;
        }
        return NULL;
}

static void answer_scan(Helper *h, const HelperReply *a, int fd) {
        size_t size = 0;
        void *users = NULL;
        int r = a->r;

        if (r == 0)
                r = helper_file_map(fd, &users, &size);

        for (HelperJob *job; (job = flying_find(h, a->id));) {
                HelperJob copy = *job;

                job_free(job);
                copy.done.scanned(copy.userdata, r, users, size / sizeof(User), a->complete);
        }
        if (users)
                (void) munmap(users, size);
}

static void answer_seize(Helper *h, const HelperReply *a, int fd) {
        HelperJob *job = flying_find(h, a->id);
        HelperTree tree = {};
        int r = a->r;

        if (!job)
                return; /* cancelled; the tree is free already */
        if (r == 0)
                r = helper_file_map(fd, (void **) &job->shared, &job->shared_size);
        if (r == 0)
                r = helper_shared_find(job->shared, job->shared_size, &tree.processes,
                                       &tree.n_processes, &tree.threads, &tree.n_threads);
        if (r != 0) {
                job_fail(job, r, &a->why);
                return;
        }
        job_move(job, &h->standing);
        job->done.seized(job->userdata, 0, &tree, &a->why);
}

static void answer_inspect(Helper *h, const HelperReply *a) {
        HelperJob *job = flying_find(h, a->id), copy;

        if (!job)
                return;
        copy = *job;
        job_free(job);
        copy.done.inspected(copy.userdata, a->r, a->r == 0 ? &a->facts : NULL, &a->why);
}

static void reply_take(Helper *h, const HelperReply *a, int fd) {
        HelperJob *job;

        if (a->answers && a->op == HELPER_INSPECT)
                answer_inspect(h, a);
        else if (a->answers && a->op == HELPER_SCAN)
                answer_scan(h, a, fd);
        else if (a->answers)
                answer_seize(h, a, fd);
        if (!a->ends)
                return;
        while ((job = flying_find(h, a->id)))
                job_fail(job, a->r < 0 ? a->r : -EIO, &a->why);
        if (h->n_flying[a->op] > 0)
                h->n_flying[a->op]--;
        queues_send(h);
}

static void list_fail(JobList *list, int error) {
        for (HelperJob *job; (job = TAILQ_FIRST(list));)
                job_fail(job, error ? error : job->error, &REFUSAL_NULL);
}

static int on_defer(sd_event_source *s, void *userdata) {
        Helper *h = userdata;

        list_fail(&h->failed, 0);
        return 0;
}

static void helper_died(Helper *h) {
        h->io = sd_event_source_disable_unref(h->io);
        h->gone = true; /* whose done asks again is told so */
        list_fail(&h->failed, 0);
        list_fail(&h->flying, -EPIPE);
        for (int op = 0; op < _HELPER_OP_MAX; op++)
                list_fail(&h->waiting[op], -EPIPE);
        h->died(h->userdata);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Helper *h = userdata;

        for (int i = 0; i < REPLIES_PER_TURN; i++) {
                _cleanup_close_ int passed = -1;
                HelperReply reply;
                int r;

                r = helper_reply_receive(h->fd, &reply, &passed);
                if (r == 0) {
                        helper_died(h);
                        return 0;
                }
                if (r == -EAGAIN)
                        break;
                if (r > 0)
                        reply_take(h, &reply, passed);
        }
        queues_send(h);
        return 0;
}

int helper_attach_event(Helper *h, sd_event *event, void (*died)(void *userdata), void *userdata) {
        int r;

        h->died = died;
        h->userdata = userdata;
        r = sd_event_add_defer(event, &h->defer, on_defer, h);
        if (r >= 0)
                r = sd_event_source_set_enabled(
                        h->defer, TAILQ_EMPTY(&h->failed) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        if (r >= 0)
                r = sd_event_add_io(event, &h->io, h->fd, EPOLLIN | EPOLLOUT, on_io, h);
        if (r < 0) {
                h->defer = sd_event_source_disable_unref(h->defer);
                return r;
        }
        (void) sd_event_source_set_description(h->io, "helper");
        return 0;
}

static void list_free(JobList *list) {
        while (!TAILQ_EMPTY(list))
                job_free(TAILQ_FIRST(list));
}

Helper *helper_free(Helper *h) {
        if (!h)
                return NULL;
        sd_event_source_disable_unref(h->io);
        sd_event_source_disable_unref(h->defer);
        list_free(&h->flying);
        list_free(&h->failed);
        list_free(&h->standing);
        for (int op = 0; op < _HELPER_OP_MAX; op++)
                list_free(&h->waiting[op]);
        close_fd(h->fd);
        /* It has nothing to tidy up, and its children go with it: their trees are let go by the kernel. */
        if (h->pid > 0 && kill(h->pid, SIGKILL) >= 0)
                while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        free(h);
        return NULL;
}
