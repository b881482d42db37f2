/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: a process whose threads execute commands, so that counts can be compared exactly. They
 * write to target_words, which has the same address in the test.
 */

#include <glib.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/util.h"

typedef struct Target Target;
typedef struct TargetOrder TargetOrder;

#define TARGET_THREADS 4

struct TargetOrder {
        enum {
                TARGET_WRITE,     /* n times to word */
                TARGET_THREAD,    /* starts thread n */
                TARGET_ALTERNATE, /* writes to word and the next one in turns, for ever */
                TARGET_FORK,      /* a child writes n times to word, and ends */
                TARGET_EXIT,      /* the thread ends */
        } what;
        unsigned n, word;
};

struct Target {
        pid_t pid;
        int pidfd;
        pid_t tids[TARGET_THREADS];
        int orders[TARGET_THREADS][2];
        int answers[2];
};

static volatile uint64_t target_words[8];
static Target *target_self; /* in the process itself */

static inline void target_write_words(unsigned n, unsigned word) {
        while (n-- > 0)
                target_words[word] = n;
}

static inline void target_answer(int32_t answer) {
        if (write(target_self->answers[1], &answer, sizeof(answer)) != sizeof(answer))
                _exit(1);
}

static inline void *target_serve(void *userdata);

static inline void target_obey(TargetOrder *order) {
        pthread_t thread;
        pid_t child;

        switch (order->what) {
        case TARGET_WRITE:
                target_write_words(order->n, order->word);
                break;
        case TARGET_ALTERNATE:
                target_answer(0);
                for (;;)
                        target_words[order->word + (order->n++ & 1)] = 0;
        case TARGET_THREAD:
                if (pthread_create(&thread, NULL, target_serve, GUINT_TO_POINTER(order->n)) != 0)
                        _exit(1);
                return; /* it answers itself */
        case TARGET_FORK:
                child = fork();
                if (child == 0) {
                        target_write_words(order->n, order->word);
                        _exit(0);
                }
                if (waitpid(child, NULL, 0) != child)
                        _exit(1);
                break;
        case TARGET_EXIT:
                target_answer(0);
                (void) syscall(SYS_exit, 0);
        }
        target_answer(0);
}

static inline void *target_serve(void *userdata) {
        unsigned thread = GPOINTER_TO_UINT(userdata);
        TargetOrder order;

        target_answer((int32_t) syscall(SYS_gettid));
        while (read(target_self->orders[thread][0], &order, sizeof(order)) == sizeof(order))
                target_obey(&order);
        _exit(0);
}

static inline int32_t target_wait(Target *s) {
        int32_t answer;

        g_assert_cmpint(read(s->answers[0], &answer, sizeof(answer)), ==, sizeof(answer));
        return answer;
}

static inline void target_close(Target *s) {
        for (unsigned i = 0; i < TARGET_THREADS; i++) {
                close_fd(s->orders[i][0]);
                close_fd(s->orders[i][1]);
        }
        close_fd(s->answers[0]);
        close_fd(s->answers[1]);
        s->pidfd = close_fd(s->pidfd);
}

/* With the given number unless it is 0; false: this user may not choose one. */
static inline bool target_start_as(Target *s, pid_t pid) {
        struct clone_args how = {
                .exit_signal = SIGCHLD,
                .set_tid = (uintptr_t) &pid,
                .set_tid_size = pid ? 1 : 0,
        };
        unsigned tries = 0;

        *s = (Target){ .pidfd = -1 };
        for (unsigned i = 0; i < TARGET_THREADS; i++)
                g_assert_cmpint(pipe(s->orders[i]), ==, 0);
        g_assert_cmpint(pipe(s->answers), ==, 0);
        do /* a number is free only a moment after its process has left /proc */
                s->pid = pid ? (pid_t) syscall(SYS_clone3, &how, sizeof(how)) : fork();
        while (s->pid < 0 && errno == EEXIST && tries++ < 1000 && usleep(1000) == 0);
        if (s->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                target_self = s;
                target_serve(GUINT_TO_POINTER(0));
        }
        if (s->pid < 0) {
                target_close(s);
                return false;
        }
        s->pidfd = pidfd_open(s->pid, 0);
        g_assert_cmpint(s->pidfd, >=, 0);
        s->tids[0] = target_wait(s);
        g_assert_cmpint(s->tids[0], ==, s->pid);
        return true;
}

static inline void target_start(Target *s) {
        g_assert_true(target_start_as(s, 0));
}

static inline Target target_new(void) {
        Target s;

        target_start(&s);
        return s;
}

static inline void target_order(Target *s, unsigned thread, TargetOrder order) {
        g_assert_cmpint(write(s->orders[thread][1], &order, sizeof(order)), ==, sizeof(order));
}

static inline void target_write(Target *s, unsigned thread, unsigned n, unsigned word) {
        target_order(s, thread, (TargetOrder){ TARGET_WRITE, n, word });
        target_wait(s);
}

static inline void target_fork(Target *s, unsigned n, unsigned word) {
        target_order(s, 0, (TargetOrder){ TARGET_FORK, n, word });
        target_wait(s);
}

/* The thread "by" starts another. */
static inline void target_add_thread(Target *s, unsigned by, unsigned thread) {
        target_order(s, by, (TargetOrder){ TARGET_THREAD, thread, 0 });
        s->tids[thread] = target_wait(s);
}

/* Whether a thread has ended: the main one stays as a zombie while others live. */
static inline bool target_thread_is_gone(const Target *s, unsigned thread) {
        g_autofree char *path =
                g_strdup_printf("/proc/%d/task/%d/stat", (int) s->pid, (int) s->tids[thread]);
        g_autofree char *text = NULL;

        return !g_file_get_contents(path, &text, NULL, NULL) ||
               g_str_has_prefix(strrchr(text, ')'), ") Z");
}

static inline void target_end_thread(Target *s, unsigned thread) {
        target_order(s, thread, (TargetOrder){ TARGET_EXIT, 0, 0 });
        target_wait(s);
        while (!target_thread_is_gone(s, thread))
                g_usleep(1000);
}

/* It ends, and is waited for: its number is free. */
static inline void target_kill(Target *s) {
        g_assert_cmpint(kill(s->pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(s->pid, NULL, 0), ==, s->pid);
}

static inline void target_end(Target *s) {
        target_kill(s);
        target_close(s);
}

/* Unless it has ended already. */
static inline void target_done(Target *s) {
        if (s->pidfd >= 0)
                target_end(s);
}
