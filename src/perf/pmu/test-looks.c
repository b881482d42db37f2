/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "looks.h"

#include <sched.h>
#include <stdatomic.h>

#include "perf/group/test-group.h"
#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel.h"
#include "perf/process/test-child.h"

#define N 32u /* looks: half of them at the first CPU, half at the second */

typedef struct Machine {
        CpuSet first, second; /* CPUs that this process may use */
        Pmu *pmu;
        Look all[N];
        Look *looks[N];
} Machine;

static atomic_uint n_here, n_by_teams, n_astray;

static bool machine_set_up(Machine *m) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int first, second;

        *m = (Machine){};
        n_here = n_by_teams = n_astray = 0;
        g_assert_cmpint(kernel_allowed(&cpus), ==, 0);
        first = cpuset_next(&cpus, 0);
        second = cpuset_next(&cpus, (unsigned) first + 1);
        if (second < 0) {
                g_test_skip("needs two CPUs");
                return false;
        }
        m->pmu = pmu_table_find(&sysfs.pmus, "breakpoint");
        g_assert_cmpint(cpuset_add(&m->first, (unsigned) first), ==, 0);
        g_assert_cmpint(cpuset_add(&m->second, (unsigned) second), ==, 0);
        for (unsigned i = 0; i < N; i++) {
                m->all[i] = (Look){ .pmu = m->pmu,
                                    .cpu = (unsigned) (i % 2 ? second : first),
                                    .wanted = { .general = 1 } };
                m->looks[i] = &m->all[i];
        }
        g_assert_cmpint(looks_start(&m->first, &m->second), ==, 0);
        return true;
}

static void machine_tear_down(Machine *m) {
        looks_stop();
        cpuset_done(&m->first);
        cpuset_done(&m->second);
}

static void note_who(void) {
        atomic_fetch_add(team_lane() == 0 ? &n_here : &n_by_teams, 1);
}

static int look_from_elsewhere(Look *l) {
        note_who();
        g_assert_cmpuint(kernel_cpu(), !=, l->cpu);
        l->result = LOOK_FREE;
        return 0;
}

static void test_each_cpu_from_the_others(void) {
        Machine m;

        if (!machine_set_up(&m))
                return;
        g_assert_cmpint(looks_make(m.looks, N, look_from_elsewhere), ==, 0);
        g_assert_cmpuint(n_by_teams, ==, N);
        for (unsigned i = 0; i < N; i++)
                g_assert_cmpint(m.all[i].result, ==, LOOK_FREE);
        machine_tear_down(&m);
}

static int look_free(Look *l) {
        note_who();
        return 0;
}

static void test_few_are_made_here(void) {
        Machine m;

        if (!machine_set_up(&m))
                return;
        g_assert_cmpint(looks_make(m.looks, 4, look_free), ==, 0);
        g_assert_cmpuint(n_here, ==, 4);
        machine_tear_down(&m);
}

static int look_without_descriptors(Look *l) {
        note_who();
        return -EMFILE;
}

static void test_first_error(void) {
        Machine m;

        if (!machine_set_up(&m))
                return;
        g_assert_cmpint(looks_make(m.looks, N, look_without_descriptors), ==, -EMFILE);
        g_assert_cmpuint(n_by_teams + n_here, <, N);
        machine_tear_down(&m);
}

/* As if all CPUs of its team had gone offline. */
static void thread_move(unsigned cpu) {
        cpu_set_t there;

        CPU_ZERO(&there);
        CPU_SET(cpu, &there);
        g_assert_cmpint(sched_setaffinity(0, sizeof(there), &there), ==, 0);
}

static int look_astray(Look *l) {
        note_who();
        if (team_lane() != 0 && atomic_fetch_add(&n_astray, 1) == 0)
                thread_move(l->cpu);
        return 0;
}

/* What was seen from the wrong CPU is void, and the teams are not asked again. */
static void test_astray(void) {
        Machine m;

        if (!machine_set_up(&m))
                return;
        g_assert_cmpint(looks_make(m.looks, N, look_astray), ==, 0);
        g_assert_cmpuint(n_here, ==, N);
        n_by_teams = 0;
        g_assert_cmpint(looks_make(m.looks, N, look_astray), ==, 0);
        g_assert_cmpuint(n_here, ==, 2 * N);
        g_assert_cmpuint(n_by_teams, ==, 0);
        machine_tear_down(&m);
}

static void take_all(void *userdata) {
        int fds[SLOTS];

        if (slots_take(*(const int *) userdata, fds, SLOTS) != SLOTS)
                _exit(1);
}

static void test_tells_what_is_taken(void) {
        Machine m;
        int second;
        pid_t pid;

        if (machine_lacks(MACHINE_CPU_EVENTS) || !machine_set_up(&m))
                return;
        g_assert_cmpint(capacity_measure(&sysfs.pmus, m.pmu), ==, 0);
        second = cpuset_next(&m.second, 0);
        pid = child_start(take_all, &second);
        g_assert_cmpint(looks_make(m.looks, N, look_at), ==, 0);
        for (unsigned i = 0; i < N; i++)
                g_assert_cmpint(m.all[i].result, ==,
                                (int) m.all[i].cpu == second ? LOOK_TAKEN : LOOK_FREE);
        child_end(pid);
        machine_tear_down(&m);
}

static void assert_divides(const char *list, const char *team, const char *others) {
        _cleanup_(cpuset_done) CpuSet cpus = cpus_of(list), first = CPUSET_NULL,
                                      second = CPUSET_NULL;
        _cleanup_free_ char *first_list = NULL, *second_list = NULL;

        g_assert_cmpint(looks_divide(&cpus, &first, &second), ==, 0);
        g_assert_cmpint(cpuset_format(&first, &first_list), ==, 0);
        g_assert_cmpint(cpuset_format(&second, &second_list), ==, 0);
        g_assert_cmpstr(first_list, ==, team);
        g_assert_cmpstr(second_list, ==, others);
}

static void test_divides_cpus(void) {
        assert_divides("0-14", "", "");
        assert_divides("0-15", "0,4,8,12", "1-3,5-7,9-11,13-15");
        assert_divides("8-19,30-33", "8,12,16,30", "9-11,13-15,17-19,31-33");
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "divides-cpus", test_divides_cpus },
                { "each-cpu-from-the-others", test_each_cpu_from_the_others },
                { "few-are-made-here", test_few_are_made_here },
                { "first-error", test_first_error },
                { "astray", test_astray },
                { "tells-what-is-taken", test_tells_what_is_taken },
        };

        return group_tests_run(argc, argv, "/looks/", tests, G_N_ELEMENTS(tests));
}
