/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is in a tree that is being stopped (seize.h), by number: processes, their threads, and what
 * is known of each. No rule is in here.
 */

#include <sys/queue.h>

#include "perf/process/seize.h"

typedef struct Task Task;
typedef struct TaskState TaskState;
typedef struct Tgroup Tgroup;

/* A thread. */
struct Task {
        pid_t tid; /* first: the key */
        Tgroup *group;
        TAILQ_ENTRY(Task) entry;
        bool standing; /* stopped by us, or cannot run user code for another reason */
        bool stopped;  /* it told us that it has stopped, and can be detached */
        int signal;    /* it stopped on its way to this signal, which it must get in the end */
};

/* A process. */
struct Tgroup {
        pid_t pid; /* first: the key */
        int pidfd;
        TAILQ_ENTRY(Tgroup) entry;
        TAILQ_HEAD(, Task) tasks;
        ProcessFacts facts;
};

struct Seize {
        TAILQ_HEAD(, Tgroup) groups;
        void *groups_by_pid;
        void *tasks_by_tid;
        SeizeRule rule;
        Refusal *why;
        size_t n_new; /* threads found in this round */
        bool blocked; /* one of the family had a thread in this round */
};

Task *seize_find_task(const Seize *s, pid_t tid);
Tgroup *seize_find_group(const Seize *s, pid_t pid);

int task_add(Seize *s, Tgroup *g, pid_t tid, Task **ret); /* -ENOMEM */
void task_forget(Seize *s, Task *t);

/* Takes pidfd over, also when it fails (-ENOMEM). */
int group_add(Seize *s, pid_t pid, int pidfd, Tgroup **ret);
void group_forget(Seize *s, Tgroup *g); /* with its threads */
bool group_stands(const Tgroup *g);

/* What /proc says of a process or thread at the moment. */
struct TaskState {
        char state;
        pid_t parent;
        unsigned flags;
};

/* False: it has ended. */
bool task_state(pid_t tid, TaskState *ret);

/* 0: nobody traces it, or it has ended. */
pid_t task_tracer(pid_t tid);
