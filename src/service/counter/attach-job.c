/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-job.h"

#include <fcntl.h>
#include <stdio.h>

#include "perf/process/procfs.h"
#include "perf/process/tree.h"
#include "service/auth/asked.h"
#include "service/sibling/reader-wire.h"

#define THREAD_ROUNDS 8  /* tries to open all threads while none is created */
#define TREE_ROUNDS   2  /* as above, while no process of the system is created */
#define TREE_THREADS  64 /* with more, looking for children takes too long for the loop */

/* Holds the process behind a descriptor that goes by that option. */
static int attach_job_take(AttachJob *a, int pidfd, const char *option, Refusal *why) {
        pid_t pid;
        int r;

        r = process_from_pidfd(pidfd, &pid, why);
        if (r != 0)
                return r;
        if (a->pid > 0 && a->pid != pid)
                return refuse(why, REFUSAL_INVALID_PROCESS,
                              "option '%s': the descriptor holds process %d, not %d", option,
                              (int) pid, (int) a->pid);
        a->pid = pid;
        a->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
        return a->pidfd < 0 ? -errno : 0;
}

static int attach_job_hold_target(AttachJob *a, pid_t pid, int pidfd, Refusal *why) {
        int r = pid > 0 ? trace_rule_check_number(a->peer, pid, why) : 0;

        if (r != 0)
                return r;
        a->pid = pid;
        if (pidfd >= 0)
                return attach_job_take(a, pidfd, "pidfd", why);
        if (a->procfd >= 0)
                return 0;
        if (pid > 0)
                return process_open(pid, &a->pidfd, why);
        return peer_process(a->peer, &a->pid, &a->pidfd, why);
}

int attach_job_hold(AttachJob *a, pid_t pid, int pidfd, int procfd, Refusal *why) {
        int r;

        if (procfd >= 0) {
                a->procfd = fcntl(procfd, F_DUPFD_CLOEXEC, 3);
                if (a->procfd < 0)
                        return -errno;
        }
        r = attach_job_hold_target(a, pid, pidfd, why);
        if (r == 0)
                a->claim = trace_rule_claim(a->peer, a->pid);
        return r;
}

int attach_job_refuse_ended(const AttachJob *a, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended", (int) a->pid);
}

/* ---- inspection ---- */

static void attach_job_inspected(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                 const Refusal *why) {
        AttachJob *a = userdata;
        const char *words;
        Refusal ended;

        a->job = NULL;
        if (r != 0) {
                a->done(a->userdata, r, why);
                return;
        }
        a->hidden = trace_rule_hides(a->peer, facts);
        if (facts->zombie) {
                r = a->hidden ? procfs_refuse_unseen(a->pid, &ended)
                              : attach_job_refuse_ended(a, &ended);
                a->done(a->userdata, r, &ended);
                return;
        }
        a->inspected = true;
        a->facts = *facts;
        words = trace_rule_denies(a->peer, a->claim, neighbour, facts);
        if (words)
                (void) snprintf(a->untraceable, sizeof(a->untraceable),
                                "the caller may not trace process %d: %s", (int) a->pid, words);
        a->done(a->userdata, 0, why);
}

static int attach_job_look(AttachJob *a, ReaderInspected done) {
        return reader_inspect(a->context->reader, a->pidfd,
                              a->claim == TRACE_PROVEN ? a->peer->pidfd : -1, done, a, &a->job);
}

static void attach_job_proven(void *userdata, int r, int pidfd, const Refusal *why) {
        AttachJob *a = userdata;
        Refusal mine = REFUSAL_NULL;

        a->job = NULL;
        a->procfd = close_fd(a->procfd);
        if (r == 0 && a->pidfd < 0) {
                r = attach_job_take(a, pidfd, "procfd", &mine);
                why = &mine;
        }
        /* where it proves nothing, count-other may still be granted for a target that is known */
        if (r == 0 || (r == REFUSAL_BAD_DESCRIPTOR && a->pidfd >= 0)) {
                a->claim = trace_rule_claim_proof(a->peer, a->pid, r == 0);
                r = 0;
        }
        if (r == 0)
                r = attach_job_look(a, attach_job_inspected);
        if (r != 0)
                a->done(a->userdata, r, why);
}

int attach_job_inspect(AttachJob *a) {
        if (a->procfd < 0)
                return attach_job_look(a, attach_job_inspected);
        return reader_prove(a->context->reader, a->procfd, a->pidfd, attach_job_proven, a, &a->job);
}

bool attach_job_is_guarded(const AttachJob *a) {
        return !a->peer->root && !a->allowed;
}

/* Who may count processes of others may find some of any user in a tree. */
uid_t attach_job_target_uid(const AttachJob *a) {
        if (!a->inspected || (a->descendants && (a->peer->root || *a->untraceable)))
                return ASKED_NOBODY;
        return a->facts.uid[0];
}

/* ---- what is opened ---- */

static void attach_job_undo(AttachJob *a) {
        a->kind->undo(a);
}

static int attach_job_check(AttachJob *a, const ReaderTree *tree, Refusal *why) {
        return a->kind->check ? a->kind->check(a, tree, why) : 0;
}

static void attach_job_accept(AttachJob *a) {
        if (a->kind->accept)
                a->kind->accept(a);
}

/* ---- a tree that stands ---- */

static int attach_job_open_tree(AttachJob *a, const ReaderTree *tree, Refusal *why) {
        _cleanup_free_ pid_t *tids = calloc(MAX(tree->n_threads, 1u), sizeof(pid_t));
        _cleanup_free_ pid_t *pids = calloc(MAX(tree->n_threads, 1u), sizeof(pid_t));
        size_t n = 0;
        int r;

        if (!tids || !pids)
                return -ENOMEM;
        for (size_t i = 0; i < tree->n_threads; i++) {
                if (!a->descendants && tree->threads[i].pid != a->pid)
                        continue;
                tids[n] = tree->threads[i].tid;
                pids[n++] = tree->threads[i].pid;
        }
        r = attach_job_check(a, a->descendants ? tree : NULL, why);
        return r == 0 ? a->kind->open(a, tids, pids, n, why) : r;
}

/* Opens the stopped tree. Undoes that if the tree has not stood still until all was open. */
static int attach_job_opened_tree(AttachJob *a, ReaderJob *job, const ReaderTree *tree,
                                  Refusal *why) {
        int r = attach_job_open_tree(a, tree, why);

        if (r != 0) {
                reader_job_cancel(job);
                return r;
        }
        r = reader_release(job, why);
        if (r == 0)
                attach_job_accept(a);
        else
                attach_job_undo(a);
        return r;
}

/* The reader could not stop the tree. */
static int attach_job_refused(AttachJob *a, int r, const Refusal *why, Refusal *ret) {
        if (r == REFUSAL_NOT_PERMITTED && !a->descendants)
                /* a child may not be traced: it is not counted, but its parent's threads stop with
                 * the tree only */
                return refuse(ret, REFUSAL_BUSY,
                              "process %d creates threads faster than they can be attached; try "
                              "again, or open the events before it starts them",
                              (int) a->pid);
        if (r == REFUSAL_NOT_PERMITTED && procfs_hides())
                (void) snprintf(a->untraceable, sizeof(a->untraceable),
                                "the caller may not trace a descendant of process %d",
                                (int) a->pid);
        else if (r == REFUSAL_NOT_PERMITTED)
                (void) snprintf(a->untraceable, sizeof(a->untraceable), "%.250s", why->text);
        *ret = *why;
        return r;
}

static void attach_job_seized(void *userdata, int r, const ReaderTree *tree, const Refusal *why) {
        AttachJob *a = userdata;
        ReaderJob *job = TAKE_PTR(a->job);
        Refusal mine = REFUSAL_NULL;

        if (r > 0)
                r = attach_job_refused(a, r, why, &mine);
        else if (r == 0)
                r = attach_job_opened_tree(a, job, tree, &mine);
        a->done(a->userdata, r, &mine);
}

static int attach_job_seize(AttachJob *a) {
        const SeizeRule rule = {
                .any = !attach_job_is_guarded(a),
                .uid = a->peer->uid,
                .gids = a->peer->gids,
                .n_gids = a->peer->n_gids,
        };
        int r = reader_seize(a->context->reader, a->pidfd, &rule, READER_SEIZE_MAX_USEC,
                             attach_job_seized, a, &a->job);

        return r < 0 ? r : -EINPROGRESS;
}

/* ---- a process that creates no thread meanwhile ---- */

/* One try. *ret_current: all threads are open, and with descendants there is no child yet. If
 * false, a thread or process was created or has ended, or the tree has to be stopped; nothing is
 * open. */
static int attach_job_try(AttachJob *a, bool *ret_current, Refusal *why) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;
        pid_t last = tree_last_born();
        int r;

        *ret_current = false;
        r = threads_list(a->pid, &threads, why);
        if (r != 0)
                return r;
        if (a->descendants &&
            (last == 0 || threads.n_tids > TREE_THREADS || tree_has_children(a->pid, &threads)))
                return 0;
        r = a->kind->open(a, threads.tids, NULL, threads.n_tids, why);
        if (r != 0)
                return r;
        r = threads_are_all(&threads, a->pid, ret_current);
        *ret_current = *ret_current && r == 0 && process_exists(a->pidfd) &&
                       (!a->descendants || tree_last_born() == last);
        if (!*ret_current)
                attach_job_undo(a);
        return r;
}

/* The events are open, disabled. The target may have executed another program meanwhile. */
static void attach_job_verified(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                const Refusal *why) {
        AttachJob *a = userdata;
        const char *words;
        Refusal changed;

        a->job = NULL;
        if (r == 0 && facts->zombie) {
                r = attach_job_refuse_ended(a, &changed);
                why = &changed;
        }
        words = r == 0 ? trace_rule_denies(a->peer, a->claim, neighbour, facts) : NULL;
        if (words) {
                r = refuse(&changed, REFUSAL_NOT_PERMITTED,
                           "process %d changed while it was being opened: %s", (int) a->pid, words);
                why = &changed;
        }
        if (r == 0)
                attach_job_accept(a);
        else
                attach_job_undo(a);
        a->done(a->userdata, r, why);
}

int attach_job_open(AttachJob *a, Refusal *why) {
        int rounds = a->descendants ? TREE_ROUNDS : THREAD_ROUNDS;
        bool current = false;
        int r = attach_job_check(a, NULL, why);

        for (int round = 0; r == 0 && !current && round < rounds; round++)
                r = attach_job_try(a, &current, why);
        if (r != 0)
                return r;
        if (!process_exists(a->pidfd)) {
                attach_job_undo(a);
                return attach_job_refuse_ended(a, why);
        }
        if (!current)
                return attach_job_seize(a);
        if (!attach_job_is_guarded(a)) {
                attach_job_accept(a);
                return 0;
        }
        r = attach_job_look(a, attach_job_verified);
        if (r < 0)
                attach_job_undo(a);
        return r < 0 ? r : -EINPROGRESS;
}

int attach_job_share(AttachJob *a) {
        int fd;

        if (a->process)
                return 0;
        fd = fcntl(a->pidfd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        a->process = shared_fd_new(fd);
        return a->process ? 0 : -ENOMEM;
}

void attach_job_done(AttachJob *a) {
        a->job = reader_job_cancel(a->job);
        if (a->kind)
                attach_job_undo(a);
        a->kind = NULL;
        a->process = shared_fd_unref(a->process);
        a->pidfd = close_fd(a->pidfd);
        a->procfd = close_fd(a->procfd);
}
