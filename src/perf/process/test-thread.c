/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/thread.h"

#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "machine.h"

static pid_t child_new(void) {
        pid_t pid = fork();

        if (pid == 0) {
                (void) pause();
                _exit(0);
        }
        return pid;
}

static void child_end(pid_t pid) {
        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void test_process_is_its_first_thread(void) {
        _cleanup_(thread_release) Thread t = THREAD_NULL;
        pid_t pid = child_new();
        Refusal why;

        g_assert_cmpint(thread_hold(pid, &t, &why), ==, 0);
        g_assert_cmpint(t.tid, ==, pid);
        g_assert_cmpint(t.pid, ==, pid);
        g_assert_cmpint(t.directory, ==, -1); /* the pidfd is enough */
        g_assert_cmpint(thread_check(&t), ==, 0);
        child_end(pid);
        g_assert_cmpint(thread_check(&t), ==, -ESRCH);
}

typedef struct Other {
        pthread_t thread;
        GMutex gate;
        pid_t tid; /* atomic */
} Other;

static void *other_run(void *userdata) {
        Other *other = userdata;

        g_atomic_int_set(&other->tid, gettid());
        g_mutex_lock(&other->gate);
        g_mutex_unlock(&other->gate);
        return NULL;
}

static void test_thread_is_held_with_its_process(void) {
        _cleanup_(thread_release) Thread t = THREAD_NULL;
        Other other = {};
        Refusal why;

        g_mutex_lock(&other.gate);
        g_assert_cmpint(pthread_create(&other.thread, NULL, other_run, &other), ==, 0);
        while (g_atomic_int_get(&other.tid) == 0)
                g_thread_yield();
        g_assert_cmpint(thread_hold(other.tid, &t, &why), ==, 0);
        g_assert_cmpint(t.tid, ==, other.tid);
        g_assert_cmpint(t.pid, ==, getpid());
        g_assert_cmpint(t.directory, >=, 0);
        g_assert_cmpint(thread_check(&t), ==, 0);
        g_mutex_unlock(&other.gate);
        g_assert_cmpint(pthread_join(other.thread, NULL), ==, 0);
        /* the kernel removes it a little later */
        while (thread_check(&t) == 0)
                g_thread_yield();
}

static void test_numbers_of_nobody(void) {
        static const struct {
                pid_t tid;
                int code;
        } numbers[] = {
                { 0, REFUSAL_INVALID_PROCESS },
                { -1, REFUSAL_INVALID_PROCESS },
                { INT32_MIN, REFUSAL_INVALID_PROCESS },
                { INT32_MAX, REFUSAL_INVALID_PROCESS },
        };
        Thread t = THREAD_NULL;
        pid_t pid = child_new();
        Refusal why;

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
                g_assert_cmpint(thread_hold(numbers[i].tid, &t, &why), ==, numbers[i].code);
        child_end(pid);
        g_assert_cmpint(thread_hold(pid, &t, &why), ==, REFUSAL_NO_SUCH_PROCESS);
        g_assert_cmpint(t.directory, ==, -1);
        g_assert_cmpint(t.pidfd, ==, -1);
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/thread/a-process-is-its-first-thread", test_process_is_its_first_thread);
        g_test_add_func("/thread/a-thread-is-held-with-its-process",
                        test_thread_is_held_with_its_process);
        g_test_add_func("/thread/numbers-of-nobody", test_numbers_of_nobody);
        return g_test_run();
}
