/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seize-tree.h"

#include <search.h>
#include <stdio.h>

#include "perf/process/procfs.h"

static int compare_numbers(const void *a, const void *b) {
        pid_t x = *(const pid_t *) a, y = *(const pid_t *) b;

        return x < y ? -1 : x > y;
}

static void *find(void *const *tree, pid_t number) {
        void **node = tfind(&number, tree, compare_numbers);

        return node ? *node : NULL;
}

Task *seize_find_task(const Seize *s, pid_t tid) {
        return find(&s->tasks_by_tid, tid);
}

Tgroup *seize_find_group(const Seize *s, pid_t pid) {
        return find(&s->groups_by_pid, pid);
}

void task_forget(Seize *s, Task *t) {
        tdelete(t, &s->tasks_by_tid, compare_numbers);
        TAILQ_REMOVE(&t->group->tasks, t, entry);
        free(t);
}

int task_add(Seize *s, Tgroup *g, pid_t tid, Task **ret) {
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

void group_forget(Seize *s, Tgroup *g) {
        while (!TAILQ_EMPTY(&g->tasks))
                task_forget(s, TAILQ_FIRST(&g->tasks));
        tdelete(g, &s->groups_by_pid, compare_numbers);
        TAILQ_REMOVE(&s->groups, g, entry);
        close_fd(g->pidfd);
        free(g);
}

int group_add(Seize *s, pid_t pid, int pidfd, Tgroup **ret) {
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

bool group_stands(const Tgroup *g) {
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

pid_t task_tracer(pid_t tid) {
        _cleanup_free_ char *text = NULL;
        const char *field;

        if (procfs_read(tid, "status", &text, NULL) < 0)
                return 0;
        field = procfs_field(text, "TracerPid");
        return field ? (pid_t) strtol(field, NULL, 10) : 0;
}

int seize_list(const Seize *s, ProcessFacts **ret_processes, size_t *ret_n_processes,
               SeizedThread **ret_threads, size_t *ret_n_threads) {
        size_t n_processes = 0, n_threads = 0;
        _cleanup_free_ ProcessFacts *processes = NULL;
        _cleanup_free_ SeizedThread *threads = NULL;
        const Tgroup *g;
        const Task *t;

        TAILQ_FOREACH (g, &s->groups, entry) {
                n_processes++;
                TAILQ_FOREACH (t, &g->tasks, entry)
                        n_threads++;
        }
        processes = calloc(MAX(n_processes, 1u), sizeof(*processes));
        threads = calloc(MAX(n_threads, 1u), sizeof(*threads));
        if (!processes || !threads)
                return -ENOMEM;
        n_processes = n_threads = 0;
        TAILQ_FOREACH (g, &s->groups, entry) {
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
