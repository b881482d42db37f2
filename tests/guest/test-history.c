/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Histories (tests/bus/history.h) on hardware counters. PERFALLOC_TEST_HISTORIES is their number;
 * --seed repeats one run of them. */

#include "guest-util.h"
#include "history.h"

#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int event_of_order(const Order *o, pid_t pid, bool cgroup, int cpu, int leader) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_HARDWARE,
                .size = sizeof(attr),
                .config = o->cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_HW_INSTRUCTIONS,
                .pinned = o->pinned && leader < 0,
                .sample_period = o->period,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
        int fd = (int) syscall(SYS_perf_event_open, &attr, pid, cpu, leader,
                               PERF_FLAG_FD_CLOEXEC | (cgroup ? PERF_FLAG_PID_CGROUP : 0));

        return fd < 0 ? -errno : fd;
}

static bool fits(unsigned cpu, unsigned n, bool cycles) {
        return shape_fits((int) cpu, n, cycles);
}

static void test_histories(void) {
        static const HistoryHost host = {
                .machine = { .general = GENERAL, .cycles = true },
                .pmu = PMU,
                .instructions = "instructions",
                .cycles = "cycles",
                .open = event_of_order,
                .targets = { [ORDER_CPU] = true,
                             [ORDER_SLEEPER] = true,
                             [ORDER_SPINNER] = true,
                             [ORDER_CGROUP] = true },
                .strangers = { "bob", "dave", "bob", "dave" },
                .users_may = true,
                .cpus_go = true,
                .fits = fits,
                .kill = service_kill,
        };

        g_assert_no_errno(mkdir(HISTORY_CGROUP, 0755));
        strangers_may_count(true);
        histories_run(&host, 60);
        strangers_may_count(false);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/history/nothing-is-confirmed-or-refused-wrongly", test_histories);
        return g_test_run();
}
