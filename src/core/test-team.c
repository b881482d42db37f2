/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "team.h"

#include "core/util.h" /* before GLib, which has a MIN of its own */

#include <glib.h>
#include <stdatomic.h>
#include <unistd.h>

#define N         1000u
#define LIMIT_SEC 60

typedef struct Tally {
        atomic_uint called[N];
        atomic_uint n_inside;
        unsigned n_together;
        GThread *caller;
} Tally;

static void count(void *userdata, size_t i) {
        Tally *t = userdata;

        atomic_fetch_add(&t->called[i], 1);
}

static void assert_each_once(Tally *t, size_t n) {
        for (size_t i = 0; i < N; i++)
                g_assert_cmpuint(t->called[i], ==, i < n);
}

static void test_calls_each_once(void) {
        static const size_t sizes[] = { 0, 1, 15, 16, 17, N };

        for (unsigned n_threads = 0; n_threads < 5; n_threads++) {
                team_start(n_threads);
                g_assert_cmpuint(team_size(), ==, n_threads);
                for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                        g_autofree Tally *t = g_new0(Tally, 1);

                        team_run(sizes[i], count, t);
                        assert_each_once(t, sizes[i]);
                }
                team_stop();
                g_assert_cmpuint(team_size(), ==, 0);
        }
}

static void await_inside(Tally *t, unsigned n) {
        gint64 end = g_get_monotonic_time() + LIMIT_SEC * G_USEC_PER_SEC;

        while (t->n_inside < n) {
                g_assert_cmpint(g_get_monotonic_time(), <, end);
                (void) usleep(100);
        }
}

/* Returns only when as many others are in it. */
static void meet(void *userdata, size_t i) {
        Tally *t = userdata;

        atomic_fetch_add(&t->n_inside, 1);
        await_inside(t, t->n_together);
        count(t, i);
}

static void test_threads_work_side_by_side(void) {
        g_autofree Tally *t = g_new0(Tally, 1);

        team_start(3);
        t->n_together = 4;
        team_run(N, meet, t);
        assert_each_once(t, N);
        team_stop();
}

/* The caller has nothing more to do, and a thread has not ended. */
static void be_late(void *userdata, size_t i) {
        Tally *t = userdata;

        if (g_thread_self() == t->caller)
                await_inside(t, 1);
        else {
                atomic_fetch_add(&t->n_inside, 1);
                (void) usleep(20000);
        }
        count(t, i);
}

static void test_waits_for_all(void) {
        g_autofree Tally *t = g_new0(Tally, 1);

        team_start(1);
        t->caller = g_thread_self();
        team_run(N, be_late, t);
        assert_each_once(t, N);
        team_stop();
}

/* A little work wakes nobody: it is done by the caller alone. */
static void note_thread(void *userdata, size_t i) {
        ((GThread **) userdata)[i] = g_thread_self();
}

static void test_little_work_is_the_callers(void) {
        GThread *threads[15];

        team_start(3);
        team_run(ELEMENTSOF(threads), note_thread, threads);
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                g_assert_true(threads[i] == g_thread_self());
        team_stop();
}

/* One that wakes late must not take what is over, and no work is lost between two rounds. */
static void test_many_rounds(void) {
        team_start(3);
        for (unsigned round = 0; round < 2000; round++) {
                g_autofree Tally *t = g_new0(Tally, 1);

                team_run(16, count, t);
                assert_each_once(t, 16);
        }
        team_stop();
}

static void test_sizes(void) {
        g_assert_cmpuint(team_size_for(1), ==, 0);
        g_assert_cmpuint(team_size_for(15), ==, 0);
        g_assert_cmpuint(team_size_for(64), ==, 8);
        g_assert_cmpuint(team_size_for(4096), ==, 32);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/team/calls-each-once", test_calls_each_once);
        g_test_add_func("/team/threads-work-side-by-side", test_threads_work_side_by_side);
        g_test_add_func("/team/waits-for-all", test_waits_for_all);
        g_test_add_func("/team/little-work-is-the-callers", test_little_work_is_the_callers);
        g_test_add_func("/team/many-rounds", test_many_rounds);
        g_test_add_func("/team/sizes", test_sizes);
        return g_test_run();
}
