/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seize.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "perf/process/procfs.h"
#include "perf/process/seize-tree.h"
#include "perf/process/threads.h"

#define PF_IO_WORKER   0x00000010u
#define PF_USER_WORKER 0x00004000u
#define SEIZE_TRIES    8       /* while others trace it and let it go */
#define WAIT_STEP_NSEC 1000000 /* a parent inside vfork never tells: it is looked for */

/* New children of a stopped thread are seized by the kernel, in the moment they are born. */
#define OPTIONS                                                                                    \
        (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

static uint64_t now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

/* The kernel refuses to seize it: why? 1: it is no part of the tree (any more). */
static int task_unseizable(Seize *s, Task *t, bool last) {
        TaskState state;
        pid_t tracer;

        if (!task_state(t->tid, &state))
                return 1;
        tracer = task_tracer(t->tid);
        if (tracer == getpid()) {
                /* born under our eyes: it stops by itself, and may have done so */
                t->standing = t->stopped = state.state == 't';
                return 0;
        }
        if (tracer > 0 && (!task_state(tracer, &state) ||
                           (s->rule.family > 0 && state.parent == s->rule.family))) {
                /* it lets go soon, or has by now */
                s->blocked = true;
                return 1;
        }
        if (tracer > 0)
                return refuse(s->why, REFUSAL_BUSY, "process %d is being traced by process %d",
                              (int) t->group->pid, (int) tracer);
        /* io_uring's workers never see user space and cannot be traced */
        t->standing = state.flags & (PF_IO_WORKER | PF_USER_WORKER);
        if (t->standing)
                return 0;
        if (!last)
                return -EAGAIN; /* whoever traced it has just let it go */
        return refuse(s->why, REFUSAL_NOT_PERMITTED, "process %d cannot be traced",
                      (int) t->group->pid);
}

static int task_seize(Seize *s, Tgroup *g, pid_t tid) {
        Task *t;
        int r;

        r = task_add(s, g, tid, &t);
        if (r < 0)
                return r;
        for (int tries = 1;; tries++) {
                if (ptrace(PTRACE_SEIZE, tid, NULL, OPTIONS) >= 0) {
                        (void) ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
                        return 0;
                }
                r = errno == EPERM ? task_unseizable(s, t, tries == SEIZE_TRIES) : 1;
                if (r != -EAGAIN)
                        break;
        }
        if (r == 1) {
                task_forget(s, t);
                s->n_new--;
        }
        return r == 1 ? 0 : r;
}

/* Looks for threads that are new, and forgets those that have ended or, by exec, changed their
 * number. */
static int group_look(Seize *s, Tgroup *g) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;
        Task *t, *next;
        int r;

        r = threads_list(g->pid, &threads, NULL);
        if (r < 0)
                return r;
        for (t = TAILQ_FIRST(&g->tasks); t; t = next) {
                next = TAILQ_NEXT(t, entry);
                if (!threads_has(&threads, t->tid))
                        task_forget(s, t);
        }
        for (size_t i = 0; i < threads.n_tids; i++)
                if (!seize_find_task(s, threads.tids[i])) {
                        r = task_seize(s, g, threads.tids[i]);
                        if (r != 0)
                                return r;
                }
        return 0;
}

/* Whether its process may be stopped; facts are those of now. */
static int group_check(Seize *s, Tgroup *g) {
        const char *words;
        int r;

        r = process_read(g->pidfd, &g->facts, s->why);
        if (r == 0 && g->facts.zombie)
                return refuse(s->why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended",
                              (int) g->pid);
        if (r != 0 || s->rule.any)
                return r;
        words = process_untraceable(&g->facts, s->rule.uid, s->rule.gids, s->rule.n_gids);
        if (words)
                return refuse(s->why, REFUSAL_NOT_PERMITTED,
                              "the caller may not trace process %d: %s", (int) g->pid, words);
        return 0;
}

/* A process that was seen as a child of the tree; by now its number may be somebody else's. */
static int group_join(Seize *s, pid_t pid) {
        TaskState state;
        Tgroup *g;
        int fd, r;

        r = process_open(pid, &fd, NULL);
        if (r != 0)
                return MIN(r, 0);
        if (!task_state(pid, &state) || !seize_find_group(s, state.parent) || !process_exists(fd)) {
                close_fd(fd);
                return 0;
        }
        r = group_add(s, pid, fd, &g);
        if (r == 0)
                r = group_check(s, g);
        if (r == REFUSAL_NO_SUCH_PROCESS) {
                group_forget(s, g);
                return 0;
        }
        return r; /* its threads have their turn in this same round */
}

/* Calls f for every child of a thread, until one answers something else than 0, which is returned.
 */
static int children_each(Seize *s, const Task *t, int (*f)(Seize *s, const Task *t, pid_t child)) {
        _cleanup_free_ char *text = NULL;
        char name[sizeof("task/-2147483648/children")], *p;
        int r;

        (void) snprintf(name, sizeof(name), "task/%d/children", (int) t->tid);
        r = procfs_read(t->group->pid, name, &text, NULL);
        if (r < 0)
                return r == -ENOENT || r == -ESRCH ? 0 : r;
        p = text;
        for (long child; r == 0 && (child = strtol(p, &p, 10)) > 0;)
                r = f(s, t, (pid_t) child);
        return r;
}

static int child_look(Seize *s, const Task *t, pid_t child) {
        return seize_find_group(s, child) ? 0 : group_join(s, child);
}

/* Whether t waits for this child: it stands, and has not yet left t's memory (vfork(2)). */
static int child_holds(Seize *s, const Task *t, pid_t child) {
        const Tgroup *g = seize_find_group(s, child);

        return g && !TAILQ_EMPTY(&g->tasks) && group_stands(g) &&
               syscall(SYS_kcmp, t->tid, child, KCMP_VM, 0, 0) == 0;
}

static bool task_in_vfork(Seize *s, const Task *t) {
        TaskState state;

        return task_state(t->tid, &state) && state.state == 'D' &&
               children_each(s, t, child_holds) == 1;
}

/* Hears who has stopped or ended. Of those that we do not know yet, nothing is lost: they are found
 * stopped. */
static void stops_collect(Seize *s) {
        pid_t tid;
        int status;

        while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
                Task *t = seize_find_task(s, tid);

                if (!t)
                        continue;
                if (!WIFSTOPPED(status)) {
                        task_forget(s, t);
                        continue;
                }
                t->standing = t->stopped = true;
                /* above bit 16 stands the event of a stop that is not for a signal */
                t->signal = status >> 16 ? 0 : WSTOPSIG(status);
        }
}

static Task *find_moving(Seize *s) {
        Tgroup *g;
        Task *t;

        TAILQ_FOREACH (g, &s->groups, entry) {
                TAILQ_FOREACH (t, &g->tasks, entry) {
                        if (!t->standing)
                                t->standing = task_in_vfork(s, t);
                        if (!t->standing)
                                return t;
                }
        }
        return NULL;
}

static int refuse_late(Seize *s, const Tgroup *g) {
        return refuse(s->why, REFUSAL_BUSY,
                      "process %d could not be stopped in time: try again when it is less busy",
                      (int) g->pid);
}

static int stops_wait(Seize *s, uint64_t deadline_usec) {
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
                if (now_usec() >= deadline_usec)
                        return refuse_late(s, moving->group);
                (void) sigtimedwait(&chld, NULL, &step);
        }
}

/* Looks once at everybody; who is found is looked at in the same round. */
static int round_look(Seize *s, uint64_t deadline_usec) {
        Tgroup *g, *next;
        Task *t;

        for (g = TAILQ_FIRST(&s->groups); g; g = next) {
                int r = group_look(s, g);

                TAILQ_FOREACH (t, &g->tasks, entry) {
                        if (r == 0)
                                r = children_each(s, t, child_look);
                }
                if (r != 0 && r != REFUSAL_NO_SUCH_PROCESS)
                        return r;
                if (now_usec() >= deadline_usec)
                        return refuse_late(s, g);
                next = TAILQ_NEXT(g, entry);
                if (r == REFUSAL_NO_SUCH_PROCESS || (TAILQ_EMPTY(&g->tasks) && !s->blocked))
                        group_forget(s, g);
        }
        return 0;
}

/* The facts as they are now that nobody can change them. */
static int groups_check(Seize *s, pid_t root) {
        Tgroup *g, *next;

        for (g = TAILQ_FIRST(&s->groups); g; g = next) {
                int r = group_check(s, g);

                next = TAILQ_NEXT(g, entry);
                if (r == REFUSAL_NO_SUCH_PROCESS)
                        group_forget(s, g); /* killed: there is no other way out */
                else if (r != 0)
                        return r;
        }
        if (!seize_find_group(s, root))
                return refuse(s->why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended", (int) root);
        return 0;
}

static int settle(Seize *s, pid_t root, uint64_t deadline_usec) {
        /* What stands bears nobody, so one round that finds nobody new would do, if /proc listed
         * children without fail while one of them is being killed. */
        for (unsigned quiet = 0; quiet < 2;) {
                int r;

                s->n_new = 0;
                s->blocked = false;
                r = round_look(s, deadline_usec);
                if (r == 0)
                        r = stops_wait(s, deadline_usec);
                if (r != 0)
                        return r;
                if (s->blocked)
                        (void) nanosleep(&(struct timespec){ .tv_nsec = WAIT_STEP_NSEC }, NULL);
                quiet = s->n_new == 0 && !s->blocked ? quiet + 1 : 0;
        }
        return groups_check(s, root);
}

/* To stop those that we are part of would stop us. */
static bool is_above_us(pid_t pid) {
        TaskState state;

        for (pid_t up = getpid(); up > 0; up = state.parent)
                if (up == pid)
                        return true;
                else if (!task_state(up, &state))
                        break;
        return false;
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
        r = group_add(s, *ret, fd, &g);
        return r == 0 ? group_check(s, g) : r;
}

int seize_begin(int pidfd, const SeizeRule *rule, uint64_t deadline_usec, Seize **ret,
                Refusal *why) {
        _cleanup_(seize_endp) Seize *s = calloc(1, sizeof(Seize));
        pid_t root;
        int r;

        if (!s)
                return -ENOMEM;
        TAILQ_INIT(&s->groups);
        s->rule = *rule;
        s->why = why;
        if (access("/proc/thread-self/children", F_OK) < 0)
                return refuse(why, REFUSAL_NOT_SUPPORTED,
                              "this kernel does not list children (CONFIG_PROC_CHILDREN)");
        r = root_join(s, pidfd, &root);
        if (r == 0)
                r = settle(s, root, deadline_usec);
        if (r == 0)
                *ret = TAKE_PTR(s);
        return r;
}

Seize *seize_end(Seize *s) {
        Tgroup *g;
        Task *t;

        if (!s)
                return NULL;
        TAILQ_FOREACH (g, &s->groups, entry) {
                TAILQ_FOREACH (t, &g->tasks, entry) {
                        if (t->stopped)
                                (void) ptrace(PTRACE_DETACH, t->tid, NULL,
                                              (void *) (intptr_t) t->signal);
                }
        }
        while (!TAILQ_EMPTY(&s->groups))
                group_forget(s, TAILQ_FIRST(&s->groups));
        free(s);
        return NULL;
}
