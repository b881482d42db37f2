/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "team.h"

#include <glib.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define N         1000u
#define LIMIT_SEC 60

typedef struct Tally {
        atomic_uint called[N];
        atomic_uint n_inside;
        unsigned n_together;
} Tally;

/* On all CPUs that this process may use. */
static Team *team_of(unsigned n_threads) {
        CpuSet cpus = CPUSET_NULL;
        cpu_set_t mask;
        Team *t = NULL;

        g_assert_cmpint(sched_getaffinity(0, sizeof(mask), &mask), ==, 0);
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &mask))
                        g_assert_cmpint(cpuset_add(&cpus, cpu), ==, 0);
        g_assert_cmpint(team_new(&t, n_threads, 1, &cpus), ==, 0);
        cpuset_done(&cpus);
        return t;
}

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
                _cleanup_(team_freep) Team *team = n_threads > 0 ? team_of(n_threads) : NULL;

                for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                        g_autofree Tally *t = g_new0(Tally, 1);

                        team_run(team, sizes[i], 8, count, t);
                        assert_each_once(t, sizes[i]);
                }
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
        _cleanup_(team_freep) Team *team = team_of(4);
        g_autofree Tally *t = g_new0(Tally, 1);

        t->n_together = 4;
        team_run(team, N, 1, meet, t);
        assert_each_once(t, N);
}

/* There is nothing more to begin, and a thread has not ended. */
static void be_late(void *userdata, size_t i) {
        Tally *t = userdata;

        if (atomic_fetch_add(&t->n_inside, 1) == 0)
                (void) usleep(20000);
        count(t, i);
}

static void test_waits_for_all(void) {
        _cleanup_(team_freep) Team *team = team_of(2);
        g_autofree Tally *t = g_new0(Tally, 1);

        team_run(team, N, 1, be_late, t);
        assert_each_once(t, N);
}

static void note_lane(void *userdata, size_t i) {
        ((unsigned *) userdata)[i] = team_lane();
}

/* A little work wakes nobody: it is done by the caller alone. */
static void test_little_work_is_the_callers(void) {
        _cleanup_(team_freep) Team *team = team_of(3);
        unsigned lanes[16];

        team_run(team, 15, 8, note_lane, lanes);
        for (size_t i = 0; i < 15; i++)
                g_assert_cmpuint(lanes[i], ==, 0);
        team_run(team, 16, 8, note_lane, lanes);
        for (size_t i = 0; i < 16; i++)
                g_assert_true(lanes[i] >= 1 && lanes[i] <= 3);
}

/* One that wakes late must not take what is over, and no work is lost between two rounds. */
static void test_many_rounds(void) {
        _cleanup_(team_freep) Team *team = team_of(3);

        for (unsigned round = 0; round < 2000; round++) {
                g_autofree Tally *t = g_new0(Tally, 1);

                team_run(team, 16, 8, count, t);
                assert_each_once(t, 16);
        }
}

static void note_cpu(void *userdata, size_t i) {
        ((int *) userdata)[i] = sched_getcpu();
}

static void test_each_runs_on_its_cpus(void) {
        _cleanup_(team_freep) Team *team = NULL;
        CpuSet cpus = CPUSET_NULL;
        unsigned here = (unsigned) sched_getcpu();
        int on[N];

        g_assert_cmpint(cpuset_add(&cpus, here), ==, 0);
        g_assert_cmpint(team_new(&team, 2, 1, &cpus), ==, 0);
        team_run(team, N, 1, note_cpu, on);
        for (size_t i = 0; i < N; i++)
                g_assert_cmpint(on[i], ==, (int) here);
        cpuset_done(&cpus);
}

static void test_no_such_cpus(void) {
        CpuSet cpus = CPUSET_NULL;
        Team *team = NULL;

        g_assert_cmpint(cpuset_add(&cpus, CPUSET_CPUS_MAX - 1), ==, 0);
        g_assert_cmpint(team_new(&team, 2, 1, &cpus), ==, -EINVAL);
        g_assert_null(team);
        cpuset_done(&cpus);
}

/* What a thread waits for is somebody else's to end: here stuck() ends it. */
static void be_stuck(void *userdata, size_t i) {
        await_inside(userdata, 1);
        count(userdata, i);
}

static void note_stuck(void *userdata) {
        atomic_fetch_add(&((Tally *) userdata)->n_inside, 1);
}

static void test_stuck_is_told_once(void) {
        _cleanup_(team_freep) Team *team = team_of(2);
        g_autofree Tally *t = g_new0(Tally, 1);

        team_set_stuck(team, note_stuck, t);
        team_run(team, N, 1, be_stuck, t);
        assert_each_once(t, N);
        g_assert_cmpuint(t->n_inside, ==, 1);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/team/calls-each-once", test_calls_each_once);
        g_test_add_func("/team/threads-work-side-by-side", test_threads_work_side_by_side);
        g_test_add_func("/team/waits-for-all", test_waits_for_all);
        g_test_add_func("/team/little-work-is-the-callers", test_little_work_is_the_callers);
        g_test_add_func("/team/many-rounds", test_many_rounds);
        g_test_add_func("/team/each-runs-on-its-cpus", test_each_runs_on_its_cpus);
        g_test_add_func("/team/no-such-cpus", test_no_such_cpus);
        g_test_add_func("/team/stuck-is-told-once", test_stuck_is_told_once);
        return g_test_run();
}
