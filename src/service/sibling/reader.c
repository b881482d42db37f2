/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "perf/process/tree.h"
#include "service/sibling/reader-process.h"
#include "service/sibling/reader-queue.h"
#include "service/sibling/sibling.h"
#include "service/util/log.h"

#define REPLIES_MAX  16 /* in one dispatch, so that other sources get theirs */
#define READER_TRIES 3u
#define WATCH_USEC   (READER_BOUND_USEC / READER_TRIES)

struct Reader {
        pid_t pid;
        ReaderQueue queue;
        sd_event_source *io, *defer;
        sd_event_source *watch; /* on while something is under way */
        ReaderJob *ping;
        bool heard;        /* it has answered anything since the watch was set */
        unsigned n_silent; /* how often it had not */
        void (*died)(void *userdata);
        void *userdata;
};

int reader_fork(Reader **ret) {
        _cleanup_(reader_freep) Reader *reader = calloc(1, sizeof(Reader));
        int r;

        if (!reader)
                return -ENOMEM;
        reader_queue_init(&reader->queue);
        r = sibling_fork(reader_process_run, &reader->pid, &reader->queue.fd);
        if (r < 0)
                return r;
        if (fcntl(reader->queue.fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        *ret = TAKE_PTR(reader);
        return 0;
}

static void queue_send(Reader *reader) {
        bool sent = reader_queue_send(&reader->queue);

        if (reader->io)
                (void) sd_event_source_set_io_events(reader->io,
                                                     sent ? EPOLLIN : EPOLLIN | EPOLLOUT);
        if (reader->defer && !TAILQ_EMPTY(&reader->queue.failed))
                (void) sd_event_source_set_enabled(reader->defer, SD_EVENT_ONESHOT);
}

static void watch_set(Reader *reader) {
        reader->heard = false;
        (void) sd_event_source_set_time_relative(reader->watch, WATCH_USEC);
        (void) sd_event_source_set_enabled(reader->watch, SD_EVENT_ONESHOT);
}

static void watch_begin(Reader *reader) {
        int on = SD_EVENT_ONESHOT;

        if (reader->watch)
                (void) sd_event_source_get_enabled(reader->watch, &on);
        if (on != SD_EVENT_OFF)
                return;
        reader->n_silent = 0;
        watch_set(reader);
}

/* Takes the job over. */
static int job_submit(Reader *reader, ReaderJob *job, ReaderJob **ret) {
        int r = reader_queue_add(&reader->queue, job);

        if (r < 0) {
                reader_job_free(job);
                return r;
        }
        if (ret)
                *ret = job;
        queue_send(reader);
        watch_begin(reader);
        return 0;
}

int reader_inspect(Reader *reader, int pidfd, int asker, ReaderInspected done, void *userdata,
                   ReaderJob **ret) {
        const int fds[] = { pidfd, asker };
        ReaderJob *job = NULL;
        int r = reader_job_new(&reader->queue, READER_INSPECT, fds, NULL,
                               (ReaderDone){ .inspected = done }, userdata, &job);

        return r < 0 ? r : job_submit(reader, job, ret);
}

int reader_prove(Reader *reader, int procfd, int pidfd, ReaderProven done, void *userdata,
                 ReaderJob **ret) {
        const int fds[] = { procfd, pidfd };
        ReaderJob *job = NULL;
        int r = reader_job_new(&reader->queue, READER_PROVE, fds, NULL,
                               (ReaderDone){ .proven = done }, userdata, &job);

        return r < 0 ? r : job_submit(reader, job, ret);
}

int reader_scan(Reader *reader, ReaderScanned done, void *userdata, ReaderJob **ret) {
        ReaderJob *job = NULL;
        int r = reader_job_new(&reader->queue, READER_SCAN, (int[]){ -1, -1 }, NULL,
                               (ReaderDone){ .scanned = done }, userdata, &job);

        return r < 0 ? r : job_submit(reader, job, ret);
}

int reader_seize(Reader *reader, int pidfd, const SeizeRule *rule, uint64_t bound_usec,
                 ReaderSeized done, void *userdata, ReaderJob **ret) {
        const int fds[] = { pidfd, -1 };
        ReaderJob *job = NULL;
        int r = reader_job_new(&reader->queue, READER_SEIZE, fds, rule,
                               (ReaderDone){ .seized = done }, userdata, &job);

        if (r < 0)
                return r;
        job->request.bound_usec = bound_usec;
        return job_submit(reader, job, ret);
}

int reader_broker(Reader *reader, int socket, int lease, ReaderEnded done, void *userdata,
                  ReaderJob **ret) {
        ReaderJob *job = NULL;
        int r = reader_job_new(&reader->queue, READER_BROKER, (const int[]){ socket, lease }, NULL,
                               (ReaderDone){ .ended = done }, userdata, &job);

        return r < 0 ? r : job_submit(reader, job, ret);
}

bool reader_frees(const Reader *reader, pid_t tracer) {
        pid_t parent = tree_parent(tracer);

        return parent == reader->pid || (parent == 0 && tracer > 1);
}

ReaderJob *reader_job_cancel(ReaderJob *job) {
        /* The reader finishes its work; closing our end of the pipe lets a tree go. */
        return reader_job_free(job);
}

int reader_release(ReaderJob *job, Refusal *why) {
        uint32_t stands = READER_TREE_STANDS;
        struct pollfd p = { .fd = job->release };
        bool stood;

        /* A reader's child that dies closes its end before the kernel lets its tree go. */
        stood = poll(&p, 1, 0) == 0 &&
                atomic_compare_exchange_strong(&job->shared->state, &stands, READER_TREE_RELEASED);
        reader_job_free(job);
        if (stood)
                return 0;
        return refuse(why, REFUSAL_BUSY,
                      "the process and its descendants could not be stopped for long enough: try "
                      "again when the machine is less busy");
}

static void answer_scan(Reader *reader, const ReaderReply *a, int fd) {
        size_t size = 0;
        void *users = NULL;
        int r = a->r;

        if (r == 0)
                r = reader_file_map(fd, &users, &size);

        for (ReaderJob *job; (job = reader_queue_find(&reader->queue, a->id));) {
                ReaderJob copy = *job;

                reader_job_free(job);
                copy.done.scanned(copy.userdata, r, users, size / sizeof(User), a->complete);
        }
        if (users)
                (void) munmap(users, size);
}

static void answer_seize(Reader *reader, const ReaderReply *a, int fd) {
        ReaderJob *job = reader_queue_find(&reader->queue, a->id);
        ReaderTree tree = {};
        int r = a->r;

        if (!job)
                return; /* cancelled, which has let the tree go */
        if (r == 0)
                r = reader_file_map(fd, (void **) &job->shared, &job->shared_size);
        if (r == 0)
                r = reader_shared_find(job->shared, job->shared_size, &tree.processes,
                                       &tree.n_processes, &tree.threads, &tree.n_threads);
        if (r != 0) {
                reader_job_fail(job, r, &a->why);
                return;
        }
        reader_job_move(job, &reader->queue.standing);
        job->done.seized(job->userdata, 0, &tree, &a->why);
}

static void answer_inspect(Reader *reader, const ReaderReply *a) {
        ReaderJob *job = reader_queue_find(&reader->queue, a->id), copy;

        if (!job)
                return;
        copy = *job;
        reader_job_free(job);
        copy.done.inspected(copy.userdata, a->r, a->r == 0 ? &a->facts : NULL, a->neighbour,
                            &a->why);
}

static void answer_prove(Reader *reader, const ReaderReply *a, int fd) {
        ReaderJob *job = reader_queue_find(&reader->queue, a->id), copy;
        int r = a->r == 0 && fd < 0 ? -EBADMSG : a->r;

        if (!job)
                return;
        copy = *job;
        reader_job_free(job);
        copy.done.proven(copy.userdata, r, fd, &a->why);
}

static void reply_take(Reader *reader, const ReaderReply *a, int fd) {
        ReaderJob *job;

        if (a->answers && a->op == READER_INSPECT)
                answer_inspect(reader, a);
        else if (a->answers && a->op == READER_PROVE)
                answer_prove(reader, a, fd);
        else if (a->answers && a->op == READER_SCAN)
                answer_scan(reader, a, fd);
        else if (a->answers && a->op == READER_SEIZE)
                answer_seize(reader, a, fd);
        if (!a->ends)
                return;
        while ((job = reader_queue_find(&reader->queue, a->id)))
                reader_job_fail(job, a->r < 0 ? a->r : -EIO, &a->why);
        reader_queue_ended(&reader->queue, a->id);
        queue_send(reader);
}

static void list_fail(ReaderJobList *list, int error) {
        for (ReaderJob *job; (job = TAILQ_FIRST(list));)
                reader_job_fail(job, error ? error : job->error, &REFUSAL_NULL);
}

static int on_defer(sd_event_source *s, void *userdata) {
        Reader *reader = userdata;

        list_fail(&reader->queue.failed, 0);
        return 0;
}

static void reader_died(Reader *reader) {
        reader->io = sd_event_source_disable_unref(reader->io);
        reader->watch = sd_event_source_disable_unref(reader->watch);
        reader->queue.gone = true; /* a done that asks again gets -EPIPE */
        list_fail(&reader->queue.failed, 0);
        list_fail(&reader->queue.flying, -EPIPE);
        for (int op = 0; op < _READER_OP_MAX; op++)
                list_fail(&reader->queue.waiting[op], -EPIPE);
        reader->died(reader->userdata);
}

/* ---- whether it runs ---- */

static void on_pinged(void *userdata, int r) {
        Reader *reader = userdata;

        reader->ping = NULL;
}

/* All that is under way may take long: whether the reader runs is asked for itself. */
static void reader_ask(Reader *reader) {
        ReaderJob *job = NULL;

        if (reader->ping || reader_job_new(&reader->queue, READER_PING, (int[]){ -1, -1 }, NULL,
                                           (ReaderDone){ .ended = on_pinged }, reader, &job) < 0)
                return;
        if (reader_queue_add(&reader->queue, job) < 0) {
                reader_job_free(job);
                return;
        }
        reader->ping = job;
        queue_send(reader);
}

/* The loop then finds that it has died. */
static void reader_lost(const Reader *reader) {
        log_plain(LOG_ERR, "The reader process does not answer and is killed.");
        (void) kill(reader->pid, SIGKILL);
}

/* When all of the service was stopped, and goes on, this looks like silence once. */
static int on_watch(sd_event_source *s, uint64_t usec, void *userdata) {
        Reader *reader = userdata;

        if (reader->heard && !reader_queue_waits(&reader->queue))
                return 0;
        reader->n_silent = reader->heard ? 0 : reader->n_silent + 1;
        if (reader->n_silent >= READER_TRIES) {
                reader_lost(reader);
                return 0;
        }
        reader_ask(reader);
        watch_set(reader);
        return 0;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Reader *reader = userdata;

        for (int i = 0; i < REPLIES_MAX; i++) {
                _cleanup_close_ int passed = -1;
                ReaderReply reply;
                int r;

                r = reader_reply_receive(reader->queue.fd, &reply, &passed);
                if (r == 0) {
                        reader_died(reader);
                        return 0;
                }
                if (r == -EAGAIN)
                        break;
                reader->heard = true;
                if (r == -EMFILE)
                        reply.r = r;
                if (r > 0 || r == -EMFILE)
                        reply_take(reader, &reply, passed);
        }
        queue_send(reader);
        return 0;
}

/* Requests may have been sent before. */
static int reader_add_watch(Reader *reader, sd_event *event) {
        return sd_event_add_time_relative(event, &reader->watch, CLOCK_MONOTONIC, WATCH_USEC, 0,
                                          on_watch, reader);
}

int reader_attach_event(Reader *reader, sd_event *event, void (*died)(void *userdata),
                        void *userdata) {
        int r;

        reader->died = died;
        reader->userdata = userdata;
        r = reader_add_watch(reader, event);
        if (r >= 0)
                r = sd_event_add_defer(event, &reader->defer, on_defer, reader);
        if (r >= 0)
                r = sd_event_source_set_enabled(reader->defer, TAILQ_EMPTY(&reader->queue.failed)
                                                                       ? SD_EVENT_OFF
                                                                       : SD_EVENT_ONESHOT);
        if (r >= 0)
                r = sd_event_add_io(event, &reader->io, reader->queue.fd, EPOLLIN | EPOLLOUT, on_io,
                                    reader);
        if (r < 0) {
                reader->watch = sd_event_source_disable_unref(reader->watch);
                reader->defer = sd_event_source_disable_unref(reader->defer);
                return r;
        }
        (void) sd_event_source_set_description(reader->io, "reader");
        return 0;
}

Reader *reader_free(Reader *reader) {
        if (!reader)
                return NULL;
        sd_event_source_disable_unref(reader->io);
        sd_event_source_disable_unref(reader->watch);
        sd_event_source_disable_unref(reader->defer);
        reader_queue_done(&reader->queue);
        /* its children die with it, so the kernel lets their trees go */
        sibling_end(reader->pid);
        free(reader);
        return NULL;
}
