/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader-process.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "broker/worker.h"
#include "perf/pmu/perf-open.h"
#include "perf/process/proof.h"
#include "service/sibling/privilege.h"
#include "service/sibling/reader-job.h"
#include "service/sibling/reader-seize.h"
#include "service/sibling/sibling.h"

#define THREADS_MAX      64u /* of a process that is read without a child, as other requests wait */
#define INSPECT_MAX_USEC (2 * USEC_PER_SEC)

typedef struct Child Child;
typedef struct ReaderProcess ReaderProcess;

struct Child {
        pid_t pid; /* 0: none */
        uint64_t id;
        ReaderOp op;
        int result; /* of a scan: the file that it writes, else -1 */
};

struct ReaderProcess {
        pid_t service;
        pid_t self;
        int socket;
        int signals;
        Child children[READER_REQUESTS_MAX];
};

static int self_reset(ReaderProcess *p, pid_t parent) {
        sigset_t children;
        int r;

        r = sibling_reset(&p->socket);
        if (r < 0)
                return r;
        (void) sigemptyset(&children);
        (void) sigaddset(&children, SIGCHLD);
        p->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
        if (p->signals < 0)
                return -errno;
        perf_open_set(NULL); /* the opener answers the service alone */
        p->service = parent;
        p->self = getpid();
        return sibling_confine("perfalloc-reader", privilege_trim_reader, parent);
}

/* Ends the process when the service has ended. */
static void reply(int socket, const ReaderReply *a, int fd) {
        if (reader_reply_send(socket, a, fd) < 0)
                _exit(EIO);
}

static ReaderReply reply_to(uint64_t id, ReaderOp op) {
        ReaderReply a;

        memset(&a, 0, sizeof(a)); /* the padding too, as it is sent */
        a.id = id;
        a.op = op;
        return a;
}

/* False: the process has more threads than that; there was no answer. */
static bool do_inspect(int socket, const ReaderRequest *q, const int fds[2], size_t threads_max,
                       bool ends) {
        ReaderReply a = reply_to(q->id, READER_INSPECT);
        int neighbour;

        a.answers = true;
        a.ends = ends;
        a.r = process_read_up_to(fds[0], threads_max, &a.facts, &a.why);
        if (a.r == -E2BIG)
                return false;
        neighbour = fds[1] >= 0 ? process_is_neighbour(fds[1]) : 0;
        a.neighbour = neighbour > 0;
        if (a.r == 0 && neighbour < 0)
                a.r = neighbour;
        reply(socket, &a, -1);
        return true;
}

static void do_prove(int socket, const ReaderRequest *q, const int fds[2]) {
        ReaderReply a = reply_to(q->id, READER_PROVE);
        _cleanup_close_ int pidfd = -1;

        a.answers = a.ends = true;
        if (fds[1] < 0)
                a.r = proof_open(fds[0], PROOF_HOST, &pidfd, &a.why);
        else
                a.r = proof_check(fds[0], PROOF_HOST, fds[1], &a.why);
        reply(socket, &a, a.r != 0 ? -1 : fds[1] < 0 ? pidfd : fds[1]);
}

static int user_found(void *userdata, const User *user) {
        int fd = *(int *) userdata;
        ssize_t n = write(fd, user, sizeof(*user));

        return n == sizeof(*user) ? 0 : n < 0 ? -errno : -EIO;
}

/* The opener keeps a copy of what it has opened until it has sent it. */
static int do_scan(ReaderProcess *p, int result) {
        pid_t skip[3 + SIBLINGS_MAX] = { p->service, p->self, getpid() };
        size_t n = 3 + sibling_elders(skip + 3);

        return users_scan(skip, n, user_found, &result);
}

static void alarm_set(uint64_t usec) {
        const struct itimerval t = {
                .it_value = { .tv_sec = (time_t) (usec / USEC_PER_SEC),
                              .tv_usec = (suseconds_t) (usec % USEC_PER_SEC) },
        };

        (void) setitimer(ITIMER_REAL, &t, NULL);
}

/* In the child, whose exit status is an errno. SIGALRM also ends a wait for the lock of somebody's
 * memory map. */
static void child_run(ReaderProcess *p, const Child *c, const ReaderRequest *q, const int fds[2]) {
        static const uint64_t bounds[_READER_OP_MAX] = {
                [READER_INSPECT] = INSPECT_MAX_USEC,
                [READER_SCAN] = READER_SCAN_MAX_USEC,
                [READER_SEIZE] = READER_SEIZE_MAX_USEC + USEC_PER_SEC,
                [READER_BROKER] = 0, /* none */
        };
        int r = 0;

        if (sibling_die_with(p->self) < 0)
                _exit(EIO);
        alarm_set(bounds[c->op]);
        if (c->op == READER_INSPECT)
                (void) do_inspect(p->socket, q, fds, SIZE_MAX, false);
        else if (c->op == READER_SCAN)
                r = do_scan(p, c->result);
        else if (c->op == READER_BROKER)
                worker_run(fds[0], fds[1]);
        else
                reader_seize_run(p->socket, q, fds[0], fds[1]);
        _exit(r < 0 ? MIN(-r, 255) : EXIT_SUCCESS);
}

static Child *child_new(ReaderProcess *p, const ReaderRequest *q) {
        for (size_t i = 0; i < READER_REQUESTS_MAX; i++)
                if (p->children[i].pid == 0) {
                        p->children[i] = (Child){ .id = q->id, .op = q->op, .result = -1 };
                        return &p->children[i];
                }
        return NULL;
}

static int child_start(ReaderProcess *p, const ReaderRequest *q, const int fds[2]) {
        Child *c = child_new(p, q);
        pid_t pid;

        if (!c)
                return -EAGAIN;
        if (c->op == READER_SCAN) {
                c->result = memfd_create("users", MFD_CLOEXEC);
                if (c->result < 0)
                        return -errno;
        }
        pid = fork();
        if (pid == 0)
                child_run(p, c, q, fds);
        if (pid < 0) {
                c->result = close_fd(c->result);
                return -errno;
        }
        c->pid = pid;
        return 0;
}

static void child_ended(ReaderProcess *p, Child *c, int status) {
        ReaderReply a = reply_to(c->id, c->op);
        int error = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
        bool whole = error == 0;
        bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;

        a.ends = true;
        /* a scan whose time is over answers with what it has found */
        a.answers = c->op == READER_SCAN && (whole || late);
        a.complete = whole;
        a.r = a.answers ? 0 : late ? -ETIMEDOUT : error ? -error : -EIO;
        if (c->op == READER_SEIZE && late) {
                a.answers = true; /* unless it had answered already */
                a.r = refuse(&a.why, REFUSAL_BUSY, "the process could not be stopped in time");
        }
        c->pid = 0;
        reply(p->socket, &a, c->result);
        c->result = close_fd(c->result);
}

static void children_reap(ReaderProcess *p) {
        struct signalfd_siginfo info;
        int status;
        pid_t pid;

        while (read(p->signals, &info, sizeof(info)) > 0)
                ;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < READER_REQUESTS_MAX; i++)
                        if (p->children[i].pid == pid)
                                child_ended(p, &p->children[i], status);
}

static void request_answer(ReaderProcess *p, const ReaderRequest *q, int r) {
        ReaderReply a = reply_to(q->id, q->op);

        a.answers = a.ends = true;
        a.r = r;
        reply(p->socket, &a, -1);
}

static void request_serve(ReaderProcess *p, const ReaderRequest *q, const int fds[2]) {
        int r;

        if (q->op == READER_PROVE) {
                do_prove(p->socket, q, fds);
                return;
        }
        if (q->op == READER_PING) {
                request_answer(p, q, 0);
                return;
        }
        if (q->op == READER_INSPECT && do_inspect(p->socket, q, fds, THREADS_MAX, true))
                return;
        r = child_start(p, q, fds);
        if (r < 0)
                request_answer(p, q, r);
}

static void request_take(ReaderProcess *p) {
        static ReaderRequestBuffer buffer;
        int fds[2], r = reader_request_receive(p->socket, &buffer, fds);

        if (r == 0)
                _exit(EXIT_SUCCESS);
        if (r == -EMFILE)
                request_answer(p, &buffer.q, r);
        if (r > 0) {
                request_serve(p, &buffer.q, fds);
                close_fd(fds[0]);
                close_fd(fds[1]);
        }
}

void reader_process_run(int socket, pid_t parent) {
        static ReaderProcess p;

        p.socket = socket;
        if (self_reset(&p, parent) < 0)
                _exit(EXIT_FAILURE);
        for (;;) {
                struct pollfd polled[] = { { .fd = p.socket, .events = POLLIN },
                                           { .fd = p.signals, .events = POLLIN } };

                if (poll(polled, ELEMENTSOF(polled), -1) < 0 && errno != EINTR)
                        _exit(EXIT_FAILURE);
                if (polled[1].revents)
                        children_reap(&p);
                request_take(&p);
        }
}
