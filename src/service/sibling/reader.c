/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "perf/process/tree.h"
#include "service/sibling/reader-process.h"
#include "service/sibling/reader-queue.h"

#define REPLIES_PER_TURN 16 /* then other sources of the loop have theirs */

struct Reader {
        pid_t pid;
        ReaderQueue queue;
        sd_event_source *io, *defer;
        void (*died)(void *userdata);
        void *userdata;
};

int reader_fork(Reader **ret) {
        pid_t parent = getpid();
        sigset_t all, before;
        Reader *h;
        int pair[2];

        h = calloc(1, sizeof(Reader));
        if (!h)
                return -ENOMEM;
        reader_queue_init(&h->queue);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                free(h);
                return -errno;
        }
        h->queue.fd = pair[0];
        /* no signal may find it before it has settled which ones to heed */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &before);
        h->pid = fork();
        if (h->pid == 0)
                reader_process_run(pair[1], parent);
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        close_fd(pair[1]);
        if (h->pid < 0 || fcntl(h->queue.fd, F_SETFL, O_NONBLOCK) < 0) {
                int r = -errno;

                reader_free(h);
                return r;
        }
        *ret = h;
        return 0;
}

static void queue_send(Reader *h) {
        bool sent = reader_queue_send(&h->queue);

        if (h->io)
                (void) sd_event_source_set_io_events(h->io, sent ? EPOLLIN : EPOLLIN | EPOLLOUT);
        if (h->defer && !TAILQ_EMPTY(&h->queue.failed))
                (void) sd_event_source_set_enabled(h->defer, SD_EVENT_ONESHOT);
}

static void job_submit(Reader *h, ReaderJob *job, ReaderJob **ret) {
        reader_job_move(job, &h->queue.waiting[job->request.op]);
        if (ret)
                *ret = job;
        queue_send(h);
}

int reader_inspect(Reader *h, int pidfd, ReaderInspected done, void *userdata, ReaderJob **ret) {
        ReaderJob *job = NULL;
        int r;

        r = reader_job_new(&h->queue, READER_INSPECT, pidfd, NULL, &job);
        if (r < 0)
                return r;
        job->done.inspected = done;
        job->userdata = userdata;
        job_submit(h, job, ret);
        return 0;
}

int reader_scan(Reader *h, ReaderScanned done, void *userdata, ReaderJob **ret) {
        ReaderJob *job = NULL;
        int r;

        r = reader_job_new(&h->queue, READER_SCAN, -1, NULL, &job);
        if (r < 0)
                return r;
        job->done.scanned = done;
        job->userdata = userdata;
        job_submit(h, job, ret);
        return 0;
}

int reader_seize(Reader *h, int pidfd, const SeizeRule *rule, uint64_t bound_usec,
                 ReaderSeized done, void *userdata, ReaderJob **ret) {
        ReaderJob *job = NULL;
        int r;

        r = reader_job_new(&h->queue, READER_SEIZE, pidfd, rule, &job);
        if (r < 0)
                return r;
        job->done.seized = done;
        job->userdata = userdata;
        job->request.bound_usec = bound_usec;
        job_submit(h, job, ret);
        return 0;
}

bool reader_frees(const Reader *h, pid_t tracer) {
        pid_t parent = tree_parent(tracer);

        return parent == h->pid || (parent == 0 && tracer > 1);
}

ReaderJob *reader_job_cancel(ReaderJob *job) {
        /* What is with the helper goes on there; closing our end of the pipe lets a tree go. */
        return reader_job_free(job);
}

int reader_release(ReaderJob *job, Refusal *why) {
        uint32_t stands = READER_TREE_STANDS;
        struct pollfd p = { .fd = job->release[1] };
        bool stood;

        /* A child that has died closed its end before the kernel let its tree go. */
        stood = poll(&p, 1, 0) == 0 &&
                atomic_compare_exchange_strong(&job->shared->state, &stands, READER_TREE_RELEASED);
        reader_job_free(job);
        if (stood)
                return 0;
        return refuse(why, REFUSAL_BUSY,
                      "the process and its descendants could not be kept still for long enough: "
                      "try again when the machine is less busy");
}

static void answer_scan(Reader *h, const ReaderReply *a, int fd) {
        size_t size = 0;
        void *users = NULL;
        int r = a->r;

        if (r == 0)
                r = reader_file_map(fd, &users, &size);

        for (ReaderJob *job; (job = reader_queue_find(&h->queue, a->id));) {
                ReaderJob copy = *job;

                reader_job_free(job);
                copy.done.scanned(copy.userdata, r, users, size / sizeof(User), a->complete);
        }
        if (users)
                (void) munmap(users, size);
}

static void answer_seize(Reader *h, const ReaderReply *a, int fd) {
        ReaderJob *job = reader_queue_find(&h->queue, a->id);
        ReaderTree tree = {};
        int r = a->r;

        if (!job)
                return; /* cancelled; the tree is free already */
        if (r == 0)
                r = reader_file_map(fd, (void **) &job->shared, &job->shared_size);
        if (r == 0)
                r = reader_shared_find(job->shared, job->shared_size, &tree.processes,
                                       &tree.n_processes, &tree.threads, &tree.n_threads);
        if (r != 0) {
                reader_job_fail(job, r, &a->why);
                return;
        }
        reader_job_move(job, &h->queue.standing);
        job->done.seized(job->userdata, 0, &tree, &a->why);
}

static void answer_inspect(Reader *h, const ReaderReply *a) {
        ReaderJob *job = reader_queue_find(&h->queue, a->id), copy;

        if (!job)
                return;
        copy = *job;
        reader_job_free(job);
        copy.done.inspected(copy.userdata, a->r, a->r == 0 ? &a->facts : NULL, &a->why);
}

static void reply_take(Reader *h, const ReaderReply *a, int fd) {
        ReaderJob *job;

        if (a->answers && a->op == READER_INSPECT)
                answer_inspect(h, a);
        else if (a->answers && a->op == READER_SCAN)
                answer_scan(h, a, fd);
        else if (a->answers)
                answer_seize(h, a, fd);
        if (!a->ends)
                return;
        while ((job = reader_queue_find(&h->queue, a->id)))
                reader_job_fail(job, a->r < 0 ? a->r : -EIO, &a->why);
        reader_queue_ended(&h->queue, a->id);
        queue_send(h);
}

static void list_fail(ReaderJobList *list, int error) {
        for (ReaderJob *job; (job = TAILQ_FIRST(list));)
                reader_job_fail(job, error ? error : job->error, &REFUSAL_NULL);
}

static int on_defer(sd_event_source *s, void *userdata) {
        Reader *h = userdata;

        list_fail(&h->queue.failed, 0);
        return 0;
}

static void reader_died(Reader *h) {
        h->io = sd_event_source_disable_unref(h->io);
        h->queue.gone = true; /* whose done asks again is told so */
        list_fail(&h->queue.failed, 0);
        list_fail(&h->queue.flying, -EPIPE);
        for (int op = 0; op < _READER_OP_MAX; op++)
                list_fail(&h->queue.waiting[op], -EPIPE);
        h->died(h->userdata);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Reader *h = userdata;

        for (int i = 0; i < REPLIES_PER_TURN; i++) {
                _cleanup_close_ int passed = -1;
                ReaderReply reply;
                int r;

                r = reader_reply_receive(h->queue.fd, &reply, &passed);
                if (r == 0) {
                        reader_died(h);
                        return 0;
                }
                if (r == -EAGAIN)
                        break;
                if (r == -EMFILE)
                        reply.r = r;
                if (r > 0 || r == -EMFILE)
                        reply_take(h, &reply, passed);
        }
        queue_send(h);
        return 0;
}

int reader_attach_event(Reader *h, sd_event *event, void (*died)(void *userdata), void *userdata) {
        int r;

        h->died = died;
        h->userdata = userdata;
        r = sd_event_add_defer(event, &h->defer, on_defer, h);
        if (r >= 0)
                r = sd_event_source_set_enabled(
                        h->defer, TAILQ_EMPTY(&h->queue.failed) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        if (r >= 0)
                r = sd_event_add_io(event, &h->io, h->queue.fd, EPOLLIN | EPOLLOUT, on_io, h);
        if (r < 0) {
                h->defer = sd_event_source_disable_unref(h->defer);
                return r;
        }
        (void) sd_event_source_set_description(h->io, "helper");
        return 0;
}

Reader *reader_free(Reader *h) {
        if (!h)
                return NULL;
        sd_event_source_disable_unref(h->io);
        sd_event_source_disable_unref(h->defer);
        reader_queue_done(&h->queue);
        /* It has nothing to tidy up, and its children go with it: their trees are let go by the
         * kernel. */
        if (h->pid > 0 && kill(h->pid, SIGKILL) >= 0)
                while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        free(h);
        return NULL;
}
