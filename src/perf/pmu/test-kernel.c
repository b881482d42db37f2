/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/kernel.h"

#include <glib.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

typedef struct Visit {
        unsigned cpu;
        clockid_t waiting;
        bool slept; /* the thread that waits used no time meanwhile */
        unsigned n;
} Visit;

static bool same_time(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int visit(void *userdata) {
        struct timespec before, after;
        Visit *v = userdata;

        v->n++;
        v->cpu = kernel_cpu();
        g_assert_no_errno(clock_gettime(v->waiting, &before));
        kernel_rest(200);
        g_assert_no_errno(clock_gettime(v->waiting, &after));
        v->slept = same_time(&before, &after);
        return 42;
}

static bool can_move(void) {
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1)
                return true;
        g_test_skip("there is one CPU, or too many");
        return false;
}

static void test_elsewhere(void) {
        cpu_set_t before, after;
        unsigned n_away = 0;

        if (!can_move())
                return;
        g_assert_no_errno(sched_getaffinity(0, sizeof(before), &before));
        for (unsigned i = 0; i < 50; i++) {
                Visit v = {};
                unsigned cpu = kernel_cpu();
                int r;

                g_assert_cmpint(pthread_getcpuclockid(pthread_self(), &v.waiting), ==, 0);
                r = kernel_elsewhere(cpu, visit, &v);
                if (r == -EAGAIN) /* other CPUs are busy */
                        continue;
                g_assert_cmpint(r, ==, 42);
                g_assert_cmpuint(v.n, ==, 1);
                g_assert_cmpuint(v.cpu, !=, cpu);
                g_assert_true(v.slept);
                n_away++;
        }
        g_assert_cmpuint(n_away, >, 0);
        g_assert_no_errno(sched_getaffinity(0, sizeof(after), &after));
        g_assert_true(CPU_EQUAL(&before, &after));
}

static void test_nowhere_else(void) {
        Visit v = { .waiting = CLOCK_MONOTONIC };
        cpu_set_t before, one;

        g_assert_no_errno(sched_getaffinity(0, sizeof(before), &before));
        CPU_ZERO(&one);
        CPU_SET(kernel_cpu(), &one);
        g_assert_no_errno(sched_setaffinity(0, sizeof(one), &one));
        g_assert_cmpint(kernel_elsewhere(kernel_cpu(), visit, &v), ==, -EAGAIN);
        g_assert_cmpuint(v.n, ==, 0);
        g_assert_no_errno(sched_setaffinity(0, sizeof(before), &before));
}

static int be_slow(void *userdata) {
        kernel_rest(2 * KERNEL_ELSEWHERE_USEC);
        return 42;
}

/* It is called back, and waited for: nothing of it goes on afterwards. */
static void test_no_time_elsewhere(void) {
        uint64_t begun = kernel_now_usec();

        if (!can_move())
                return;
        g_assert_cmpint(kernel_elsewhere(kernel_cpu(), be_slow, NULL), ==, -EAGAIN);
        g_assert_cmpuint(kernel_now_usec() - begun, >=, 2 * KERNEL_ELSEWHERE_USEC);
}

static void test_offline(void) {
        g_assert_false(kernel_is_offline(kernel_cpu()));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/kernel/elsewhere-is-another-cpu", test_elsewhere);
        g_test_add_func("/kernel/with-one-cpu-there-is-no-other", test_nowhere_else);
        g_test_add_func("/kernel/elsewhere-in-time-or-not-at-all", test_no_time_elsewhere);
        g_test_add_func("/kernel/this-cpu-is-online", test_offline);
        return g_test_run();
}
