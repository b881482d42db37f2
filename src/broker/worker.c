/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "worker.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "broker/broker-wire.h"
#include "broker/listener.h"

#if defined(__x86_64__)
#define ARCH_OURS AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_OURS AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH_OURS AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH_OURS AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH_OURS AUDIT_ARCH_S390X
#endif

#define SOCKET_FD 3
#define LEASE_FD  4

typedef struct Worker {
        int socket, listener, prover;
        ListenerPage *page;
} Worker;

/* A call that waits, and what was found out about it. */
typedef struct Call {
        uint64_t id;
        uint64_t attr_address;
        pid_t pid;
        int group_fd;
        BrokerRequest request;
        size_t n_attr;
        int target, group; /* descriptors */
} Call;

/* ---- reading it ---- */

/* The arguments of perf_event_open(2), as the kernel takes them out of the registers. */
static void call_read_arguments(Call *c, const struct seccomp_notif *n) {
        memset(&c->request, 0, offsetof(BrokerRequest, attr)); /* the padding too, as it is sent */
        c->id = n->id;
        c->attr_address = n->data.args[0];
        c->pid = (pid_t) n->data.args[1];
        c->request.cpu = (int32_t) n->data.args[2];
        c->group_fd = (int) n->data.args[3];
        c->request.flags = n->data.args[4];
        c->n_attr = 0;
        c->target = c->group = -1;
}

/* A thread, of the task's own process or of another one. */
static int call_read_thread(const Worker *w, Call *c, pid_t tid) {
        BrokerRequest *q = &c->request;
        int r;

        q->tid = tid;
        if (tid == q->task.tid || task_process(tid) == q->task.process) {
                q->target = BROKER_TASK;
                return task_hold(&q->task, &c->target);
        }
        r = other_read(tid, &q->task, w->prover, &q->other, &c->target);
        q->target = r == -ESRCH ? BROKER_NOBODY : BROKER_OTHER;
        q->other.sandboxed = w->page->sandboxed;
        return r == -ESRCH ? 0 : r;
}

static int call_read_target(const Worker *w, Call *c) {
        BrokerRequest *q = &c->request;

        if (q->flags & PERF_FLAG_PID_CGROUP) {
                if (c->pid == -1 || q->cpu == -1) { /* the kernel does not look at the descriptor */
                        q->target = BROKER_NOBODY;
                        return 0;
                }
                q->target = BROKER_CGROUP;
                return task_take_fd(&q->task, c->pid, &c->target);
        }
        if (c->pid == -1) {
                q->target = BROKER_CPU;
                return 0;
        }
        return call_read_thread(w, c, c->pid == 0 ? q->task.tid : c->pid);
}

static int call_read_group(Call *c) {
        if (c->group_fd == -1)
                return 0;
        c->request.in_group = true;
        return task_take_fd(&c->request.task, c->group_fd, &c->group);
}

/* 0 or a negative errno, for the task. */
static int call_read(const Worker *w, Call *c, pid_t tid) {
        ssize_t n;
        int r = task_read(tid, &c->request.task);

        if (r < 0)
                return r;
        n = task_read_attr(tid, c->attr_address, c->request.attr);
        if (n < 0)
                return (int) n;
        c->n_attr = (size_t) n;
        r = call_read_target(w, c);
        return r < 0 ? r : call_read_group(c);
}

/* ---- answering it ---- */

static void call_give(const Worker *w, const Call *c, const BrokerReply *a, int event) {
        int error = 0;

        if (event < 0)
                error = EMFILE; /* it found no room in the table of this process */
        else if (a->recheck && !other_is_same(c->target, &c->request.other))
                error = ESRCH; /* it has executed a program that may be nobody's to count */
        else if (a->redirect && ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, c->group) < 0)
                error = errno;
        else if (a->start && ioctl(event, PERF_EVENT_IOC_ENABLE, 0) < 0)
                error = errno;
        if (error)
                listener_fail(w->listener, c->id, error);
        else
                listener_give(w->listener, c->id, event, c->request.flags & PERF_FLAG_FD_CLOEXEC);
}

static void call_answer(const Worker *w, const Call *c, const BrokerReply *a, int event) {
        if (a->answer == BROKER_GIVE) {
                call_give(w, c, a, event);
                return;
        }
        if (a->answer == BROKER_PASS) {
                listener_let_pass(w->listener, c->id);
                return;
        }
        if (a->error == E2BIG)
                task_write_attr_size(c->request.task.tid, c->attr_address, a->size, w->listener,
                                     c->id);
        listener_fail(w->listener, c->id, a->error);
}

/* The task may have died while it was read, and its number may be another's: then nothing that was
 * read counts. */
static void call_ask(const Worker *w, Call *c) {
        _cleanup_close_ int event = -1;
        BrokerReply a;

        if (!listener_awaits(w->listener, c->id))
                return;
        if (broker_request_send(w->socket, &c->request, c->n_attr, c->target, c->group) < 0 ||
            broker_reply_receive(w->socket, &a, &event) <= 0)
                _exit(EIO);
        call_answer(w, c, &a, event);
}

static void call_serve(const Worker *w, const struct seccomp_notif *n) {
        static Call c;
        int r;

        if (n->data.arch == ARCH_OURS && n->data.nr == SYS_landlock_restrict_self)
                w->page->sandboxed = true;
        /* The filter is the client's, and may forward anything. */
        if (n->data.arch != ARCH_OURS || n->data.nr != SYS_perf_event_open || n->pid == 0) {
                listener_let_pass(w->listener, n->id);
                return;
        }
        call_read_arguments(&c, n);
        r = call_read(w, &c, (pid_t) n->pid);
        if (r == 0)
                call_ask(w, &c);
        else
                listener_fail(w->listener, c.id, -r);
        c.target = close_fd(c.target);
        c.group = close_fd(c.group);
}

/* ---- the process ---- */

/* Its id goes first: what is half cleared was answered. */
static void call_clear(struct seccomp_notif *call) {
        *(volatile __u64 *) &call->id = 0;
        memset(call, 0, sizeof(*call));
}

static _Noreturn void worker_serve(const Worker *w) {
        /* what an earlier worker had received, and maybe not answered */
        if (w->page->call.id != 0 && listener_awaits(w->listener, w->page->call.id))
                call_serve(w, &w->page->call);
        for (;;) {
                int r;

                call_clear(&w->page->call);
                r = listener_receive(w->listener, w->page);
                if (r == 0)
                        call_serve(w, &w->page->call);
                else if (r != -EINTR && (r != -ENOENT || listener_has_ended(w->listener)))
                        _exit(r == -ENOENT ? EXIT_SUCCESS : -r);
        }
}

/* A worker waits for its clients, and for the memory of tasks that may never answer (userfaultfd,
 * FUSE), and may be stopped. So the end of the lease is SIGKILL. */
static int lease_watch(int lease) {
        struct pollfd p = { .fd = lease };

        if (fcntl(lease, F_SETOWN, getpid()) < 0 || fcntl(lease, F_SETSIG, SIGKILL) < 0 ||
            fcntl(lease, F_SETFL, O_ASYNC) < 0)
                return -errno;
        return poll(&p, 1, 0) == 0 ? 0 : -ESRCH; /* it may have ended before */
}

static int descriptors_keep(int socket, int lease) {
        if (dup3(socket, SOCKET_FD, O_CLOEXEC) < 0 ||
            (lease != LEASE_FD && dup3(lease, LEASE_FD, O_CLOEXEC) < 0) ||
            close_range(LEASE_FD + 1, UINT32_MAX, 0) < 0)
                return -errno;
        return 0;
}

void worker_run(int socket, int lease) {
        Worker w = { .socket = SOCKET_FD, .listener = -1, .prover = -1 };
        int page = -1, r;

        (void) prctl(PR_SET_NAME, "perfalloc-broker"); /* as perfallocd(8) calls it */
        r = descriptors_keep(socket, lease);
        if (r == 0)
                r = lease_watch(LEASE_FD);
        if (r == 0)
                r = broker_wire_await(w.socket, &w.listener, &page, &w.prover);
        if (r == 0)
                r = listener_page_map(page, &w.page);
        if (r < 0)
                _exit(-r);
        close_fd(page);
        worker_serve(&w);
}
