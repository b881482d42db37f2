/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seize-tree.h"

#include <linux/kcmp.h>
#include <search.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "perf/process/procfs.h"

static int compare_numbers(const void *a, const void *b) {
        pid_t x = *(const pid_t *) a, y = *(const pid_t *) b;

        return x < y ? -1 : x > y;
}

static void *find(void *const *tree, pid_t number) {
        void **node = tfind(&number, tree, compare_numbers);

        return node ? *node : NULL;
}

Task *seize_find_task(const SeizeTree *s, pid_t tid) {
        return find(&s->tasks_by_tid, tid);
}

Tgroup *seize_find_group(const SeizeTree *s, pid_t pid) {
        return find(&s->groups_by_pid, pid);
}

void task_forget(SeizeTree *s, Task *t) {
        tdelete(t, &s->tasks_by_tid, compare_numbers);
        TAILQ_REMOVE(&t->group->tasks, t, entry);
        free(t);
}

int task_add(SeizeTree *s, Tgroup *g, pid_t tid, Task **ret) {
        Task *t = calloc(1, sizeof(Task));

        if (!t)
                return -ENOMEM;
        *t = (Task){ .tid = tid, .group = g };
        if (!tsearch(t, &s->tasks_by_tid, compare_numbers)) {
                free(t);
                return -ENOMEM;
        }
        TAILQ_INSERT_TAIL(&g->tasks, t, entry);
        s->n_new++;
        *ret = t;
        return 0;
}

void tgroup_forget(SeizeTree *s, Tgroup *g) {
        while (!TAILQ_EMPTY(&g->tasks))
                task_forget(s, TAILQ_FIRST(&g->tasks));
        tdelete(g, &s->groups_by_pid, compare_numbers);
        TAILQ_REMOVE(&s->groups, g, entry);
        close_fd(g->pidfd);
        free(g);
}

int tgroup_add(SeizeTree *s, pid_t pid, int pidfd, Tgroup **ret) {
        Tgroup *g = calloc(1, sizeof(Tgroup));

        if (!g || !tsearch((g->pid = pid, g), &s->groups_by_pid, compare_numbers)) {
                free(g);
                close_fd(pidfd);
                return -ENOMEM;
        }
        g->pidfd = pidfd;
        TAILQ_INIT(&g->tasks);
        TAILQ_INSERT_TAIL(&s->groups, g, entry);
        *ret = g;
        return 0;
}

bool tgroup_stands(const Tgroup *g) {
        Task *t;

        TAILQ_FOREACH (t, &g->tasks, entry) {
                if (!t->standing)
                        return false;
        }
        return true;
}

bool task_state(pid_t pid, TaskState *ret) {
        _cleanup_free_ char *text = NULL;
        const char *fields;

        if (procfs_read(pid, "stat", &text, NULL) < 0)
                return false;
        fields = procfs_stat(text, NULL);
        return fields &&
               sscanf(fields, "%c %d %*d %*d %*d %*d %u", &ret->state, &ret->parent, &ret->flags) ==
                       3 &&
               ret->state != 'Z' && ret->state != 'X';
}

bool process_is_between(pid_t pid) {
        _cleanup_free_ char *text = NULL;
        const char *fields;
        char state;
        int n_threads;

        if (procfs_read(pid, "stat", &text, NULL) < 0)
                return false;
        fields = procfs_stat(text, NULL);
        return fields &&
               sscanf(fields,
                      "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
                      &state, &n_threads) == 2 &&
               state == 'Z' && n_threads > 1;
}

int task_each_child(const Task *t, int (*f)(void *userdata, pid_t child), void *userdata) {
        _cleanup_free_ char *text = NULL;
        char name[sizeof("task/-2147483648/children")], *p;
        int r;

        (void) snprintf(name, sizeof(name), "task/%d/children", (int) t->tid);
        r = procfs_read(t->group->pid, name, &text, NULL);
        if (r < 0)
                return r == -ENOENT || r == -ESRCH ? 0 : r;
        p = text;
        for (long child; r == 0 && (child = strtol(p, &p, 10)) > 0;)
                r = f(userdata, (pid_t) child);
        return r;
}

typedef struct Vfork {
        const SeizeTree *tree;
        pid_t parent;
} Vfork;

/* Whether the parent waits for this child: it stands, and still shares the parent's memory. */
static int child_holds(void *userdata, pid_t child) {
        const Vfork *v = userdata;
        const Tgroup *g = seize_find_group(v->tree, child);

        return g && !TAILQ_EMPTY(&g->tasks) && tgroup_stands(g) &&
               syscall(SYS_kcmp, v->parent, child, KCMP_VM, 0, 0) == 0;
}

bool task_in_vfork(const SeizeTree *s, const Task *t) {
        Vfork v = { s, t->tid };
        TaskState state;

        return task_state(t->tid, &state) && state.state == 'D' &&
               task_each_child(t, child_holds, &v) == 1;
}

bool task_is_lost(const Task *t) {
        unsigned long message;

        return t->stopped && ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &message) < 0;
}

void task_take_exec(SeizeTree *s, pid_t tid) {
        unsigned long former = 0;
        Task *t;

        (void) ptrace(PTRACE_GETEVENTMSG, tid, NULL, &former);
        t = (pid_t) former == tid ? NULL : seize_find_task(s, (pid_t) former);
        if (t)
                task_forget(s, t);
}
