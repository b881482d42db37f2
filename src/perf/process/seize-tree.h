/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The processes and threads of a tree that is being stopped (seize.h), by number, and what is known
 * of each.
 */

#include <sys/queue.h>

#include "perf/process/process.h"

typedef struct SeizeTree SeizeTree;
typedef struct Task Task;
typedef struct TaskState TaskState;
typedef struct Tgroup Tgroup;

/* A thread. */
struct Task {
        pid_t tid; /* first: the key */
        Tgroup *group;
        TAILQ_ENTRY(Task) entry;
        bool standing; /* stopped by us, or cannot run user code for another reason */
        bool stopped;  /* it has reported its stop, and can be detached */
        int signal; /* it stopped before the delivery of this signal, and gets it when detached */
};

/* A process. */
struct Tgroup {
        pid_t pid; /* first: the key */
        int pidfd;
        TAILQ_ENTRY(Tgroup) entry;
        TAILQ_HEAD(, Task) tasks;
        ProcessFacts facts;
};

/* All zero but for TAILQ_INIT(&groups): empty. */
struct SeizeTree {
        TAILQ_HEAD(, Tgroup) groups;
        void *groups_by_pid;
        void *tasks_by_tid;
        size_t n_new; /* threads added since the caller set it to 0 */
};

Task *seize_find_task(const SeizeTree *s, pid_t tid);
Tgroup *seize_find_group(const SeizeTree *s, pid_t pid);

int task_add(SeizeTree *s, Tgroup *g, pid_t tid, Task **ret); /* -ENOMEM */
void task_forget(SeizeTree *s, Task *t);

/* Takes pidfd over, also when it fails (-ENOMEM). */
int tgroup_add(SeizeTree *s, pid_t pid, int pidfd, Tgroup **ret);
void tgroup_forget(SeizeTree *s, Tgroup *g); /* with its threads */
bool tgroup_stands(const Tgroup *g);

/* What /proc says of a process or thread now. */
struct TaskState {
        char state;
        pid_t parent;
        unsigned flags;
};

/* False: it has ended. */
bool task_state(pid_t tid, TaskState *ret);

/* Whether its leader has ended and other threads live: one of them execs, and gets the leader's
 * number when all others are gone. Where the leader just ended, it stays so. */
bool process_is_between(pid_t pid);

/* Calls f for each child of a thread; a non-zero return of f ends the walk and is returned. */
int task_each_child(const Task *t, int (*f)(void *userdata, pid_t child), void *userdata);

/* Whether it waits in vfork(2) for a child that stands. */
bool task_in_vfork(const SeizeTree *s, const Task *t);

/* Whether it was stopped and is not any more: it was killed, or another thread has its number. When
 * that one execs, the kernel lets go of the leader without a word. */
bool task_is_lost(const Task *t);

/* tid has stopped at PTRACE_EVENT_EXEC: forgets the number that it had before. */
void task_take_exec(SeizeTree *s, pid_t tid);
