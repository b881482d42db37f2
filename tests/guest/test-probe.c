/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Capacity and probe themselves, without the service, on this kernel and its counters. */

#include "perf/pmu/capacity.h" /* before GLib, which has a MIN of its own */
#include "perf/pmu/counter-use.h"
#include "perf/pmu/kernel-share.h"
#include "perf/pmu/probe.h"

#include "cpu-switch.h"
#include "guest-util.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EMPTY_CGROUP "/sys/fs/cgroup/empty"

static PmuTable table;
static Pmu *pmu;

static uint64_t monotonic_usec(void) {
        return (uint64_t) g_get_monotonic_time();
}

static Shape wants(void *userdata, const Pmu *which, unsigned cpu) {
        return *(const Shape *) userdata;
}

/* Whether all of it is confirmed on all CPUs; the rest as the probe has it at its end. */
static bool confirms(Shape shape, Probe *ret) {
        _cleanup_(probe_freep) Probe *p = NULL;
        int r;

        g_assert_cmpint(probe_new(wants, &shape, &p), ==, 0);
        g_assert_cmpint(probe_add(p, pmu, &pmu->cpus), ==, 0);
        while ((r = probe_look(p, monotonic_usec())) == PROBE_AGAIN)
                g_usleep(p->next_usec - MIN(monotonic_usec(), p->next_usec));
        g_assert_cmpint(r, ==, PROBE_DONE);
        if (ret)
                *ret = *p;
        return probe_confirms(p);
}

static bool confirms_general(unsigned n) {
        return confirms((Shape){ .general = n }, NULL);
}

static Shape free_counters(unsigned cpu) {
        Shape found;

        g_assert_cmpint(probe_free_now(pmu, cpu, pmu_whole(pmu), &found), ==, 0);
        return found;
}

/* ---- what there is ---- */

static void test_capacity(void) {
        g_assert_cmpuint(pmu->counters, ==, GENERAL);
        g_assert_cmpuint(pmu->n_fixed, ==, 1);
        g_assert_cmpstr(pmu->fixed[0].name, ==, "cycles");
        g_assert_cmpstr(pmu->general.name, ==, "instructions");
        g_assert_nonnull(strstr(pmu->probed, "instructions"));
        g_assert_true(shape_is_empty(kernel_share(pmu, KERNEL_SHARE_PATH)));
}

static void test_capacity_beside_pinned(void) {
        Stranger s = { .kind = INSTRUCTIONS, .cpu = -1, .n = GENERAL, .pinned = true };
        g_autoptr(Actor) a = stranger_new(&s);

        g_assert_cmpint(capacity_measure(&table, pmu), ==, 0);
        test_capacity();
        stranger_assert_alive(a, true);
}

static void test_use(void) {
        static const struct {
                uint64_t config, config1;
                unsigned general;
                uint32_t fixed;
                unsigned spill;
        } uses[] = {
                { PERF_COUNT_HW_INSTRUCTIONS, 0, 1, 0, 0 },
                { PERF_COUNT_HW_CPU_CYCLES, 0, 0, 1, 1 },
                { PERF_COUNT_HW_CPU_CYCLES, 1, 0, 1, 2 },
                { PERF_COUNT_HW_INSTRUCTIONS, 1, 2, 0, 0 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(uses); i++) {
                const struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
                                                      .config = uses[i].config,
                                                      .config1 = uses[i].config1 };
                CounterUse use;

                g_assert_cmpint(counter_use_measure(pmu, &attr, &use), ==, 0);
                g_assert_cmpuint(use.takes.general, ==, uses[i].general);
                g_assert_cmpuint(use.takes.fixed, ==, uses[i].fixed);
                g_assert_cmpuint(use.spill[0], ==, uses[i].spill);
        }
}

/* ---- what is free ---- */

static void test_free(void) {
        uint64_t begun = monotonic_usec();
        Probe p;

        g_assert_true(confirms(pmu_whole(pmu), &p));
        g_assert_cmpuint(p.begun_usec, >=, begun);
        g_assert_cmpuint(monotonic_usec() - begun, <, PROBE_WATCH_USEC);
}

static void test_beside(gconstpointer data) {
        Stranger s = *(const Stranger *) data;

        for (s.n = 1; s.n <= GENERAL; s.n++) {
                g_autoptr(Actor) a = stranger_new(&s);
                bool own = s.kind == CYCLES;
                Shape found = free_counters(0);

                g_assert_cmpuint(found.general, ==, GENERAL - s.n + own);
                g_assert_cmpuint(found.fixed, ==, own ? 0 : 1);
                g_assert_true(shape_contains(free_counters(1), pmu_whole(pmu)));
                g_assert_false(confirms(pmu_whole(pmu), NULL));
                g_assert_false(confirms_general(GENERAL - s.n + own + 1));
                if (s.n < GENERAL)
                        g_assert_true(confirms_general(GENERAL - s.n + own));
                stranger_assert_alive(a, s.pinned);
        }
        g_assert_true(confirms(pmu_whole(pmu), NULL));
}

/* The counter of cycles is of no use to who wants instructions. */
static void test_wrong_event(void) {
        Stranger s = { .kind = INSTRUCTIONS, .cpu = 1, .n = GENERAL, .pinned = true };
        const EventSpec mine = { .kind = INSTRUCTIONS, .pid = -1, .cpu = 1, .pinned = true };
        g_autoptr(Actor) a = stranger_new(&s);
        EventTimes times;
        int fd;

        g_assert_false(confirms_general(1));
        fd = event_open(&mine, -1);
        g_assert_cmpint(fd, >=, 0);
        g_assert_false(event_read(fd, &times));
        close_fd(fd);
        stranger_assert_alive(a, true);
}

static void be_on(int first, int second) {
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        CPU_SET((size_t) first, &cpus);
        CPU_SET((size_t) second, &cpus);
        g_assert_no_errno(sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* A task that never rests on the CPU that this one is on has its pinned events there only while
 * this one is not. */
static int spin_with_pinned(int fd, const void *data) {
        const int *cpu = data;
        const EventSpec e = { .kind = INSTRUCTIONS, .pid = 0, .cpu = -1, .pinned = true };

        be_on(*cpu, *cpu);
        for (unsigned i = 0; i < GENERAL; i++)
                if (event_open(&e, -1) < 0)
                        return 1;
        act_say(fd, '.');
        for (;;)
                burn_aside();
}

static void test_own_cpu(void) {
        for (int cpu = 0; cpu < 2; cpu++) {
                g_autoptr(Actor) a = actor_new("root", spin_with_pinned, &cpu);

                g_assert_cmpint(actor_hear(a), ==, '.');
                for (unsigned i = 0; i < 8; i++) {
                        be_on(cpu, cpu);
                        be_on(0, 1);
                        g_assert_false(confirms_general(GENERAL));
                }
        }
}

/* A CPU that a task of real time has for itself is no place to look from. */
static void test_no_time_elsewhere(void) {
        cpus_can_be_taken(true);
        for (int cpu = 0; cpu < 2; cpu++) {
                Stranger s = {
                        .kind = INSTRUCTIONS, .cpu = cpu, .n = 1, .pinned = true, .own = true
                };
                g_autoptr(Actor) a = NULL;

                be_on(!cpu, !cpu);
                a = stranger_new(&s);
                be_on(0, 1);
                g_assert_false(confirms_general(GENERAL));
                g_assert_true(confirms_general(GENERAL - 1));
                stranger_assert_alive(a, true);
        }
        cpus_can_be_taken(false);
}

static void test_busy(void) {
        g_autoptr(Actor) first = spinner_new("bob", 0), second = spinner_new("bob", 1);

        for (unsigned i = 0; i < 20; i++) {
                g_assert_true(confirms(pmu_whole(pmu), NULL));
                g_usleep(1700);
        }
}

static void test_offline(void) {
        Shape found;

        cpu_must_switch(false);
        g_assert_true(confirms(pmu_whole(pmu), NULL));
        g_assert_cmpint(probe_free_now(pmu, 1, pmu_whole(pmu), &found), ==, LOOK_OFFLINE);
        g_assert_cmpint(capacity_measure(&table, pmu), ==, 0);
        test_capacity();
        cpu_must_switch(true);
        g_assert_true(shape_contains(free_counters(1), pmu_whole(pmu)));
}

/* With one CPU alone there is no other one to look from, and the probe says so. */
static void test_alone(void) {
        _cleanup_(probe_freep) Probe *p = NULL;
        Shape shape = pmu_whole(pmu);

        cpu_must_switch(false);
        g_assert_cmpint(probe_new(wants, &shape, &p), ==, 0);
        g_assert_cmpint(probe_add(p, pmu, &pmu->cpus), ==, 0);
        g_assert_cmpint(probe_look(p, monotonic_usec()), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        g_assert_true(probe_is_alone(p));
        cpu_must_switch(true);
        g_assert_true(confirms(shape, NULL));
}

/* The only events of a CPU are those of a cgroup without tasks: the kernel does not start what is
 * enabled there, and all counters are free. */
static void test_empty_cgroup(void) {
        struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_HW_CPU_CYCLES };
        _cleanup_close_ int cgroup = -1;

        g_assert_no_errno(mkdir(EMPTY_CGROUP, 0755));
        cgroup = open(EMPTY_CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        g_assert_cmpint(cgroup, >=, 0);
        for (unsigned i = 0; i < 40; i++) {
                _cleanup_close_ int fd =
                        (int) syscall(SYS_perf_event_open, &attr, cgroup, (int) i % 2, -1,
                                      PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);

                g_assert_cmpint(fd, >=, 0);
                g_assert_true(shape_equal(free_counters(i % 2), pmu_whole(pmu)));
        }
        g_assert_no_errno(rmdir(EMPTY_CGROUP));
}

int main(int argc, char **argv) {
        static const Stranger flexible = { .kind = INSTRUCTIONS, .cpu = 0 };
        static const Stranger pinned = { .kind = INSTRUCTIONS, .cpu = 0, .pinned = true };
        static const Stranger cycles = { .kind = CYCLES, .cpu = 0, .pinned = true };
        static const Stranger samples = { .kind = INSTRUCTIONS, .cpu = 0, .period = 1000000 };
        int r;

        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(pmu_table_load(&table, "/sys"), ==, 0);
        pmu = pmu_table_find(&table, PMU);
        g_assert_nonnull(pmu);
        g_assert_cmpint(capacity_measure(&table, pmu), ==, 0);
        kernel_share_look(pmu, KERNEL_SHARE_PATH, KERNEL_SHARE_CPUS);
        g_test_add_func("/probe/six-general-ones-and-cycles", test_capacity);
        g_test_add_func("/probe/the-same-beside-pinned-ones", test_capacity_beside_pinned);
        g_test_add_func("/probe/which-counters-an-event-takes", test_use);
        g_test_add_func("/probe/what-is-free-is-confirmed", test_free);
        g_test_add_data_func("/probe/beside-flexible-ones", &flexible, test_beside);
        g_test_add_data_func("/probe/beside-pinned-ones", &pinned, test_beside);
        g_test_add_data_func("/probe/beside-cycles", &cycles, test_beside);
        g_test_add_data_func("/probe/beside-sampling-ones", &samples, test_beside);
        g_test_add_func("/probe/instructions-are-not-cycles", test_wrong_event);
        g_test_add_func("/probe/the-own-cpu-is-seen-from-another", test_own_cpu);
        g_test_add_func("/probe/without-time-elsewhere-it-looks-all-the-same",
                        test_no_time_elsewhere);
        g_test_add_func("/probe/busy-is-not-taken", test_busy);
        g_test_add_func("/probe/an-offline-cpu-is-in-nobodys-way", test_offline);
        g_test_add_func("/probe/events-of-an-empty-cgroup-take-nothing", test_empty_cgroup);
        g_test_add_func("/probe/with-one-cpu-it-says-so", test_alone);
        r = g_test_run();
        pmu_table_done(&table);
        return r;
}
