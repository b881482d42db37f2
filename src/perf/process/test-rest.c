/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/test-rest.h"

#include "machine.h"
#include "perf/process/test-target.h"

static void test_what_sleeps_rests(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(rest_done) Rest rest = REST_NULL;

        target_add_thread(&s, 0, 1);
        rest_begin(&rest, s.pid);
        g_assert_cmpuint(rest.n_threads, ==, 2);
        g_assert_true(rest_add(&rest, s.pid));
        g_assert_cmpuint(rest.n_threads, ==, 2);
        g_assert_true(rest_lasts(&rest));
}

/* One of its threads is enough, and it need not be seen while it runs. */
static void test_what_has_run_does_not(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(rest_done) Rest rest = REST_NULL, again = REST_NULL;

        target_add_thread(&s, 0, 1);
        rest_begin(&rest, s.pid);
        target_write(&s, 1, 1, 0);
        g_assert_false(rest_lasts(&rest));
        rest_begin(&again, s.pid);
        g_assert_true(rest_lasts(&again));
        g_assert_false(rest_lasts(&rest));
}

static void test_what_runs_does_not(void) {
        _cleanup_(target_done) Target s = target_new();

        target_add_thread(&s, 0, 1);
        target_order(&s, 1, (TargetOrder){ TARGET_ALTERNATE, 0, 0 });
        target_wait(&s);
        for (int i = 0; i < 20; i++) {
                _cleanup_(rest_done) Rest rest = REST_NULL;

                g_assert_false(rest_add(&rest, s.pid));
        }
}

/* Who ran while the others were being read may have created it. */
static void test_a_new_thread_ends_it(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(rest_done) Rest rest = REST_NULL, later = REST_NULL;

        rest_begin(&rest, s.pid);
        target_add_thread(&s, 0, 1);
        rest_begin(&later, s.pid);
        g_assert_cmpint(later.threads[0].tid, ==, s.pid);
        rest.threads[0].runs = later.threads[0].runs;
        g_assert_false(rest_lasts(&rest));
}

static void test_what_has_ended_does_not(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(rest_done) Rest rest = REST_NULL, gone = REST_NULL;
        pid_t pid = s.pid;

        rest_begin(&rest, pid);
        target_end(&s);
        g_assert_false(rest_lasts(&rest));
        g_assert_false(rest_add(&gone, pid));
}

static void test_more_processes_than_it_looks_at(void) {
        _cleanup_(rest_done) Rest rest = REST_NULL;
        Target s[REST_PROCESSES_MAX + 1];

        for (size_t i = 0; i < ELEMENTSOF(s); i++) {
                s[i] = target_new();
                rest_await(s[i].pid); /* it sleeps from now on */
        }
        for (size_t i = 0; i < REST_PROCESSES_MAX; i++)
                g_assert_true(rest_add(&rest, s[i].pid));
        g_assert_true(rest_lasts(&rest));
        g_assert_false(rest_add(&rest, s[REST_PROCESSES_MAX].pid));
        for (size_t i = 0; i < ELEMENTSOF(s); i++)
                target_end(&s[i]);
}

static void *sleep_on(void *userdata _unused_) {
        while (pause() < 0)
                ;
        return NULL;
}

static void test_more_threads_than_it_looks_at(void) {
        size_t n_threads = 0;
        pid_t pid = fork();

        g_assert_cmpint(pid, >=, 0);
        if (pid == 0) {
                pthread_t thread;

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (unsigned i = 0; i < REST_THREADS_MAX; i++)
                        (void) pthread_create(&thread, NULL, sleep_on, NULL);
                (void) sleep_on(NULL);
        }
        while (n_threads <= REST_THREADS_MAX) {
                _cleanup_(threads_done) Threads threads = THREADS_NULL;

                g_assert_cmpint(threads_list(pid, &threads, NULL), ==, 0);
                n_threads = threads.n_tids;
        }
        for (int i = 0; i < 20; i++) {
                _cleanup_(rest_done) Rest rest = REST_NULL;

                g_assert_false(rest_add(&rest, pid));
        }
        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rest/what-sleeps-rests", test_what_sleeps_rests);
        g_test_add_func("/rest/what-has-run-does-not", test_what_has_run_does_not);
        g_test_add_func("/rest/what-runs-does-not", test_what_runs_does_not);
        g_test_add_func("/rest/a-new-thread-ends-it", test_a_new_thread_ends_it);
        g_test_add_func("/rest/what-has-ended-does-not", test_what_has_ended_does_not);
        g_test_add_func("/rest/more-processes-than-it-looks-at",
                        test_more_processes_than_it_looks_at);
        g_test_add_func("/rest/more-threads-than-it-looks-at", test_more_threads_than_it_looks_at);
        return g_test_run();
}
