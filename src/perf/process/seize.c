/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seize.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "perf/process/label.h"
#include "perf/process/procfs.h"
#include "perf/process/seize-attach.h"
#include "perf/process/seize-rounds.h"
#include "perf/process/seize-tree.h"
#include "perf/process/threads.h"
#include "perf/process/tree.h"

#define PF_IO_WORKER   0x00000010u
#define PF_USER_WORKER 0x00004000u
#define SEIZE_TRIES    8       /* while others trace it and detach */
#define WAIT_STEP_NSEC 1000000 /* a parent inside vfork reports no stop and is polled */

/* With these the kernel seizes new children of a seized thread at their birth. */
#define OPTIONS                                                                                    \
        (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

struct Seize {
        SeizeTree tree;
        SeizeRule rule;
        uint64_t deadline_usec;
        char *label; /* the root's LSM label, once it has joined */
        Refusal *why;
        bool blocked; /* one of the family traced a thread in this round */
};

/* Finds out why the kernel refuses to seize it. 1: it is not part of the tree any more. */
static int task_unseizable(Seize *s, Task *t, bool last) {
        TaskState state;
        pid_t tracer;

        if (!task_state(t->tid, &state))
                return 1;
        tracer = thread_tracer(t->tid);
        if (tracer == getpid()) {
                /* seized at its birth: it stops by itself, or has done so already */
                t->standing = t->stopped = state.state == 't';
                return 0;
        }
        if (tracer > 0 && (!task_state(tracer, &state) ||
                           (s->rule.family > 0 && state.parent == s->rule.family))) {
                /* the tracer detaches soon, or has done so */
                s->blocked = true;
                return 1;
        }
        if (tracer > 0)
                return refuse(s->why, REFUSAL_BUSY, "process %d is being traced by process %d",
                              (int) t->group->pid, (int) tracer);
        /* io_uring's workers never run in user space and cannot be traced */
        t->standing = state.flags & (PF_IO_WORKER | PF_USER_WORKER);
        if (t->standing)
                return 0;
        if (!last)
                return -EAGAIN; /* the tracer has just detached */
        return refuse(s->why, REFUSAL_NOT_PERMITTED, "process %d cannot be traced",
                      (int) t->group->pid);
}

static int refuse_late(Seize *s, const Tgroup *g) {
        return refuse(s->why, REFUSAL_BUSY,
                      "process %d could not be stopped in time: try again when it is less busy",
                      (int) g->pid);
}

static int task_seize(Seize *s, Tgroup *g, pid_t tid) {
        Task *t;
        int r;

        r = task_add(&s->tree, g, tid, &t);
        if (r < 0)
                return r;
        for (int tries = 1;; tries++) {
                r = seize_attach(tid, OPTIONS);
                if (r == 0) {
                        (void) ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
                        return 0;
                }
                t = seize_find_task(&s->tree, tid); /* it may have ended during the call */
                if (!t)
                        return 0;
                if (r == -ETIMEDOUT)
                        return refuse_late(s, g);
                r = r == -EPERM ? task_unseizable(s, t, tries == SEIZE_TRIES) : 1;
                if (r != -EAGAIN)
                        break;
        }
        if (r == 1) {
                task_forget(&s->tree, t);
                s->tree.n_new--;
        }
        return r == 1 ? 0 : r;
}

/* Seizes new threads, and forgets those that have ended or, by exec, changed their number. */
static int tgroup_look(Seize *s, Tgroup *g) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;
        Task *t, *next;
        int r;

        r = threads_list(g->pid, &threads, NULL);
        if (r < 0)
                return r;
        for (t = TAILQ_FIRST(&g->tasks); t; t = next) {
                next = TAILQ_NEXT(t, entry);
                if (!threads_has(&threads, t->tid) || task_is_lost(t))
                        task_forget(&s->tree, t);
        }
        for (size_t i = 0; i < threads.n_tids; i++)
                if (!seize_find_task(&s->tree, threads.tids[i])) {
                        r = task_seize(s, g, threads.tids[i]);
                        if (r != 0)
                                return r;
                }
        return 0;
}

static int refuse_ended(Seize *s, const Tgroup *g) {
        return refuse(s->why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended", (int) g->pid);
}

/* The right to the root of a tree is one to its descendants, unless the LSM tells them apart. */
static int label_check(Seize *s, const Tgroup *g) {
        _cleanup_free_ char *label = NULL;
        int r = label_read(g->pid, &label);

        if (r < 0)
                return r;
        if (!s->label)
                s->label = TAKE_PTR(label);
        else if (strcmp(s->label, label) != 0)
                return refuse(s->why, REFUSAL_NOT_PERMITTED,
                              "the caller may not trace process %d: its LSM label is another than "
                              "that of the process whose descendant it is",
                              (int) g->pid);
        return 0;
}

/* Reads the facts of the process and whether it may be stopped. */
static int tgroup_check(Seize *s, Tgroup *g) {
        const char *words;
        int r;

        r = process_read(g->pidfd, &g->facts, s->why);
        if (r == 0 && g->facts.zombie)
                return refuse_ended(s, g);
        if (r != 0 || s->rule.any)
                return r;
        words = process_untraceable(&g->facts, s->rule.uid, s->rule.gids, s->rule.n_gids);
        if (words)
                return refuse(s->why, REFUSAL_NOT_PERMITTED,
                              "the caller may not trace process %d: %s", (int) g->pid, words);
        r = label_check(s, g);
        /* a process that has ended has no label, or that of another one with its number */
        return process_exists(g->pidfd) ? r : refuse_ended(s, g);
}

/* pid was listed as a child of the tree; the number may be another process's by now. */
static int tgroup_join(Seize *s, pid_t pid) {
        TaskState state;
        Tgroup *g;
        int fd, r;

        if (process_is_between(pid)) {
                s->blocked = true;
                return 0;
        }
        r = process_open(pid, &fd, NULL);
        if (r != 0)
                return MIN(r, 0);
        if (!task_state(pid, &state) || !seize_find_group(&s->tree, state.parent)) {
                close_fd(fd);
                return 0;
        }
        r = tgroup_add(&s->tree, pid, fd, &g);
        if (r == 0)
                r = tgroup_check(s, g);
        if (r == REFUSAL_NO_SUCH_PROCESS) {
                tgroup_forget(&s->tree, g);
                return 0;
        }
        return r; /* its threads are looked at in this same round */
}

static int child_look(void *userdata, pid_t child) {
        Seize *s = userdata;

        return seize_find_group(&s->tree, child) ? 0 : tgroup_join(s, child);
}

/* Collects the stops and ends of threads; those not known yet are found stopped later. Also a
 * signal handler, see seize_attach(). */
static void stops_collect(void *userdata) {
        Seize *s = userdata;
        pid_t tid;
        int status;

        while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
                Task *t = seize_find_task(&s->tree, tid);

                if (WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXEC)
                        task_take_exec(&s->tree, tid);
                if (!t)
                        continue;
                if (!WIFSTOPPED(status)) {
                        task_forget(&s->tree, t);
                        continue;
                }
                t->standing = t->stopped = true;
                /* the bits from 16 on: the stop was for an event, not for a signal */
                t->signal = status >> 16 ? 0 : WSTOPSIG(status);
        }
}

/* Whether it still has to be waited for. */
static bool task_moves(Seize *s, Task *t) {
        if (!t->standing)
                t->standing = task_in_vfork(&s->tree, t);
        if (t->standing)
                return false;
        if (thread_tracer(t->tid) == getpid())
                return true;
        task_forget(&s->tree, t);
        s->tree.n_new++; /* the number may be a thread's that is new: there is another round */
        return false;
}

static Task *find_moving(Seize *s) {
        Tgroup *g;
        Task *t, *next;

        TAILQ_FOREACH (g, &s->tree.groups, entry) {
                for (t = TAILQ_FIRST(&g->tasks); t; t = next) {
                        next = TAILQ_NEXT(t, entry);
                        if (task_moves(s, t))
                                return t;
                }
        }
        return NULL;
}

static int stops_wait(Seize *s) {
        const struct timespec step = { .tv_nsec = WAIT_STEP_NSEC };
        sigset_t chld;

        (void) sigemptyset(&chld);
        (void) sigaddset(&chld, SIGCHLD);
        for (;;) {
                const Task *moving;

                stops_collect(s);
                moving = find_moving(s);
                if (!moving)
                        return 0;
                if (now_usec(CLOCK_MONOTONIC) >= s->deadline_usec)
                        return refuse_late(s, moving->group);
                (void) sigtimedwait(&chld, NULL, &step);
        }
}

/* Looks once at each process; those that it finds are looked at in the same round. */
static int tree_look(Seize *s) {
        Tgroup *g, *next;
        Task *t;

        for (g = TAILQ_FIRST(&s->tree.groups); g; g = next) {
                int r = tgroup_look(s, g);

                TAILQ_FOREACH (t, &g->tasks, entry) {
                        if (r == 0)
                                r = task_each_child(t, child_look, s);
                }
                if (r != 0 && r != REFUSAL_NO_SUCH_PROCESS)
                        return r;
                if (now_usec(CLOCK_MONOTONIC) >= s->deadline_usec)
                        return refuse_late(s, g);
                next = TAILQ_NEXT(g, entry);
                s->blocked |= TAILQ_EMPTY(&g->tasks) && process_is_between(g->pid);
                if (r == REFUSAL_NO_SUCH_PROCESS || (TAILQ_EMPTY(&g->tasks) && !s->blocked))
                        tgroup_forget(&s->tree, g);
        }
        return 0;
}

/* Checks the facts again, now that nothing can change them. */
static int tgroups_check(Seize *s, pid_t root) {
        Tgroup *g, *next;

        for (g = TAILQ_FIRST(&s->tree.groups); g; g = next) {
                int r = tgroup_check(s, g);

                next = TAILQ_NEXT(g, entry);
                if (r == REFUSAL_NO_SUCH_PROCESS) /* killed: it cannot end otherwise */
                        tgroup_forget(&s->tree, g);
                else if (r != 0)
                        return r;
        }
        if (!seize_find_group(&s->tree, root))
                return refuse(s->why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended", (int) root);
        return 0;
}

static int round_look(void *userdata, bool *ret_new) {
        Seize *s = userdata;
        int r;

        s->tree.n_new = 0;
        s->blocked = false;
        r = tree_look(s);
        if (r == 0)
                r = stops_wait(s);
        if (r == 0 && s->blocked)
                (void) nanosleep(&(struct timespec){ .tv_nsec = WAIT_STEP_NSEC }, NULL);
        *ret_new = s->tree.n_new > 0 || s->blocked;
        return r;
}

static int settle(Seize *s, pid_t root) {
        int r = seize_rounds(round_look, s);

        return r == 0 ? tgroups_check(s, root) : r;
}

static bool is_pid(const void *userdata, pid_t pid) {
        return pid == *(const pid_t *) userdata;
}

/* Whether to stop the process would stop this one too. */
static bool is_above_us(pid_t pid) {
        return pid == getpid() || tree_descends(getpid(), is_pid, &pid);
}

static int root_join(Seize *s, int pidfd, pid_t *ret) {
        Tgroup *g;
        int fd, r;

        r = process_from_pidfd(pidfd, ret, s->why);
        if (r != 0)
                return r;
        if (is_above_us(*ret))
                return refuse(s->why, REFUSAL_NOT_PERMITTED,
                              "process %d cannot be stopped: this service is a descendant of it",
                              (int) *ret);
        fd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        r = tgroup_add(&s->tree, *ret, fd, &g);
        return r == 0 ? tgroup_check(s, g) : r;
}

int seize_begin(int pidfd, const SeizeRule *rule, uint64_t deadline_usec, Seize **ret,
                Refusal *why) {
        _cleanup_(seize_endp) Seize *s = calloc(1, sizeof(Seize));
        pid_t root;
        int r;

        if (!s)
                return -ENOMEM;
        TAILQ_INIT(&s->tree.groups);
        s->rule = *rule;
        s->deadline_usec = deadline_usec;
        s->why = why;
        if (access("/proc/thread-self/children", F_OK) < 0)
                return refuse(why, REFUSAL_NOT_SUPPORTED,
                              "this kernel does not list children (CONFIG_PROC_CHILDREN)");
        r = seize_attach_init(deadline_usec, stops_collect, s);
        if (r == 0)
                r = root_join(s, pidfd, &root);
        if (r == 0)
                r = settle(s, root);
        if (r == 0)
                *ret = TAKE_PTR(s);
        return r;
}

int seize_list(const Seize *s, ProcessFacts **ret_processes, size_t *ret_n_processes,
               SeizedThread **ret_threads, size_t *ret_n_threads) {
        size_t n_processes = 0, n_threads = 0;
        _cleanup_free_ ProcessFacts *processes = NULL;
        _cleanup_free_ SeizedThread *threads = NULL;
        const Tgroup *g;
        const Task *t;

        TAILQ_FOREACH (g, &s->tree.groups, entry) {
                n_processes++;
                TAILQ_FOREACH (t, &g->tasks, entry)
                        n_threads++;
        }
        processes = calloc(MAX(n_processes, 1u), sizeof(*processes));
        threads = calloc(MAX(n_threads, 1u), sizeof(*threads));
        if (!processes || !threads)
                return -ENOMEM;
        n_processes = n_threads = 0;
        TAILQ_FOREACH (g, &s->tree.groups, entry) {
                processes[n_processes++] = g->facts;
                TAILQ_FOREACH (t, &g->tasks, entry)
                        threads[n_threads++] = (SeizedThread){ t->tid, g->pid };
        }
        *ret_processes = TAKE_PTR(processes);
        *ret_threads = TAKE_PTR(threads);
        *ret_n_processes = n_processes;
        *ret_n_threads = n_threads;
        return 0;
}

Seize *seize_end(Seize *s) {
        Tgroup *g;
        Task *t;

        if (!s)
                return NULL;
        TAILQ_FOREACH (g, &s->tree.groups, entry) {
                TAILQ_FOREACH (t, &g->tasks, entry) {
                        if (t->stopped)
                                (void) ptrace(PTRACE_DETACH, t->tid, NULL,
                                              (void *) (intptr_t) t->signal);
                }
        }
        while (!TAILQ_EMPTY(&s->tree.groups))
                tgroup_forget(&s->tree, TAILQ_FIRST(&s->tree.groups));
        free(s->label);
        free(s);
        return NULL;
}
