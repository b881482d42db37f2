/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Trees of processes that the reader stops. */

#include "service/sibling/test-reader.h"

#include "perf/process/procfs.h"
#include "perf/process/test-child.h"

typedef struct Seizing {
        Fixture *f;
        ReaderJob *job;
        Answer a;
        uint64_t keep_usec; /* how long the tree is kept within the callback */
        int released;
} Seizing;

static void on_seized(void *userdata, int r, const ReaderTree *tree, const Refusal *why) {
        Seizing *s = userdata;

        s->a.n_calls++;
        s->a.r = r;
        if (r != 0)
                return;
        s->a.n_processes = tree->n_processes;
        s->a.n_threads = tree->n_threads;
        s->a.facts = tree->processes[0];
        g_assert_cmpint(tree->threads[0].pid, ==, tree->processes[0].pid);
        g_usleep(s->keep_usec);
        s->released = reader_release(s->job, NULL);
}

static char state_of(pid_t pid) {
        _cleanup_free_ char *text = NULL;

        g_assert_cmpint(procfs_read(pid, "stat", &text, NULL), ==, 0);
        return *procfs_stat(text, NULL);
}

static void fork_sleepers(void *userdata) {
        for (int i = 0; i < 3; i++)
                if (child_fork())
                        for (;;)
                                pause();
}

static const SeizeRule any = { .any = true };

static void test_a_tree_stands_until_it_is_released(Fixture *f, const void *userdata) {
        pid_t pid = child_start(fork_sleepers, NULL);
        _cleanup_close_ int fd = -1;
        Seizing s = { .f = f, .keep_usec = 20000 };

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(reader_seize(f->reader, fd, &any, USEC_PER_SEC, on_seized, &s, &s.job), ==,
                        0);
        run_until(f, &s.a.n_calls, 1);
        g_assert_cmpint(s.a.r, ==, 0);
        g_assert_cmpuint(s.a.n_processes, ==, 4);
        g_assert_cmpuint(s.a.n_threads, ==, 4);
        g_assert_cmpint(s.released, ==, 0);
        while (state_of(pid) != 'S')
                g_usleep(1000);
        child_end(pid);
}

static void test_who_wants_the_same_tree_waits_for_its_turn(Fixture *f, const void *userdata) {
        pid_t pid = child_start(fork_sleepers, NULL);
        _cleanup_close_ int fd = -1;
        Seizing s[20];

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(s); i++) {
                s[i] = (Seizing){ .f = f, .keep_usec = 1000 };
                g_assert_cmpint(reader_seize(f->reader, fd, &any, USEC_PER_SEC, on_seized, &s[i],
                                             &s[i].job),
                                ==, 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(s); i++) {
                run_until(f, &s[i].a.n_calls, 1);
                g_assert_cmpint(s[i].a.r, ==, 0);
                g_assert_cmpint(s[i].released, ==, 0);
        }
        child_end(pid);
}

static void test_a_tree_that_is_kept_too_long_is_let_go(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        Seizing s = { .f = f, .keep_usec = 300000 };

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(
                reader_seize(f->reader, fd, &any, 50 * USEC_PER_MSEC, on_seized, &s, &s.job), ==,
                0);
        run_until(f, &s.a.n_calls, 1);
        g_assert_cmpint(s.a.r, ==, 0);
        g_assert_cmpint(s.released, ==, REFUSAL_BUSY);
        g_assert_cmpint(state_of(pid), ==, 'S');
        child_end(pid);
}

static void on_seized_kill(void *userdata, int r, const ReaderTree *tree, const Refusal *why) {
        Seizing *s = userdata;

        s->a.n_calls++;
        s->a.r = r;
        g_assert_cmpint(r, ==, 0);
        /* the tracer dies, and with it the promise */
        g_assert_cmpint(tree->processes[0].tracer, >, 0);
        g_assert_cmpint(kill(tree->processes[0].tracer, SIGKILL), ==, 0);
        while (state_of(tree->processes[0].pid) == 't')
                g_usleep(1000);
        s->released = reader_release(s->job, NULL);
}

static void test_the_death_of_the_tracer_is_noticed(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        Seizing s = { .f = f };

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(
                reader_seize(f->reader, fd, &any, 2 * USEC_PER_SEC, on_seized_kill, &s, &s.job), ==,
                0);
        run_until(f, &s.a.n_calls, 1);
        g_assert_cmpint(s.released, ==, REFUSAL_BUSY);
        g_assert_cmpuint(f->n_died, ==, 0);
        child_end(pid);
}

static void test_a_cancelled_seizure_lets_go(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        Answer a = {};

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        /* more than the reader does at a time, so that leaving one behind would be noticed */
        for (int i = 0; i < 20; i++) {
                Seizing s = { .f = f };

                g_assert_cmpint(
                        reader_seize(f->reader, fd, &any, 2 * USEC_PER_SEC, on_seized, &s, &s.job),
                        ==, 0);
                reader_job_cancel(s.job);
        }
        do {
                a.n_calls = 0;
                g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a, NULL), ==, 0);
                run_until(f, &a.n_calls, 1);
        } while (a.facts.tracer != 0 || state_of(pid) != 'S');
        child_end(pid);
}

static void test_a_refused_seizure_says_why(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        Seizing ours = { .f = f }, foreign = { .f = f };
        const SeizeRule nobody = { .uid = geteuid() + 1, .gids = (gid_t[]){ 65534 }, .n_gids = 1 };
        _cleanup_close_ int self = -1;

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(process_open(getpid(), &self, NULL), ==, 0);
        g_assert_cmpint(
                reader_seize(f->reader, self, &any, USEC_PER_SEC, on_seized, &ours, &ours.job), ==,
                0);
        g_assert_cmpint(reader_seize(f->reader, fd, &nobody, USEC_PER_SEC, on_seized, &foreign,
                                     &foreign.job),
                        ==, 0);
        run_until(f, &ours.a.n_calls, 1);
        run_until(f, &foreign.a.n_calls, 1);
        g_assert_cmpint(ours.a.r, ==, REFUSAL_NOT_PERMITTED);
        g_assert_cmpint(foreign.a.r, ==, REFUSAL_NOT_PERMITTED);
        child_end(pid);
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        reach_process_1();
        g_test_init(&argc, &argv, NULL);
#define TEST(name) READER_TEST("/reader-seize/", name)
        TEST(a_tree_stands_until_it_is_released);
        TEST(who_wants_the_same_tree_waits_for_its_turn);
        TEST(a_tree_that_is_kept_too_long_is_let_go);
        TEST(the_death_of_the_tracer_is_noticed);
        TEST(a_cancelled_seizure_lets_go);
        TEST(a_refused_seizure_says_why);
        return g_test_run();
}
