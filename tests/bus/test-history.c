/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Histories (history.h) on breakpoints, which every machine has, or on this machine's core PMU
 * where PERFALLOC_TEST_HISTORIES_ON is "core" and users may count CPUs (tests/rig/histories).
 * PERFALLOC_TEST_HISTORIES is their number; --seed repeats one run of them. */

#include "history.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define SLOTS 4u

static int breakpoint_of_order(const Order *o, pid_t pid, bool cgroup, int cpu, int leader) {
        return breakpoint_open(pid, cpu);
}

static bool fits(unsigned cpu, unsigned n, bool cycles) {
        int fds[SLOTS];
        unsigned i = 0;
        bool all;

        while (i < MIN(n, SLOTS) && (fds[i] = breakpoint_open(-1, (int) cpu)) >= 0)
                i++;
        all = i == n;
        while (i > 0)
                close_fd(fds[--i]);
        return all;
}

static bool is_back(pid_t was) {
        pid_t pid = service_number("ready");

        return pid > 0 && pid != was;
}

static void service_kill(Client *c) {
        pid_t pid = service_number("pid");

        g_assert_no_errno(kill(pid, SIGKILL));
        await(is_back(pid));
}

/* ---- on the core PMU ---- */

/* Others' events move behind the last one every few ms; ours may have come before all of them. */
#define TURNS_USEC 60000
#define GROUP_MAX  16u

/* An event that has no counter of its own on any CPU. */
static int branches_open(struct perf_event_attr *attr, pid_t pid, int cpu, int leader,
                         unsigned long flags) {
        int fd;

        attr->type = PERF_TYPE_HARDWARE;
        attr->size = sizeof(*attr);
        attr->config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
        fd = (int) syscall(SYS_perf_event_open, attr, pid, cpu, leader,
                           flags | PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int branches_of_order(const Order *o, pid_t pid, bool cgroup, int cpu, int leader) {
        struct perf_event_attr attr = { .pinned = o->pinned && leader < 0,
                                        .sample_period = o->period,
                                        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                       PERF_FORMAT_TOTAL_TIME_RUNNING };

        return branches_open(&attr, pid, cpu, leader, cgroup ? PERF_FLAG_PID_CGROUP : 0);
}

static bool branches_were_on(int fd) {
        uint64_t times[3];

        return read(fd, times, sizeof(times)) == sizeof(times) && times[1] > 0 &&
               times[2] == times[1];
}

/* The group is on without a pause, for longer than it would be at the expense of others. */
static bool branches_fit(unsigned cpu, unsigned n, bool cycles) {
        int fds[GROUP_MAX];
        unsigned i = 0;
        bool all;

        for (int fd; i < MIN(n, GROUP_MAX); fds[i++] = fd) {
                struct perf_event_attr attr = {
                        .disabled = i == 0,
                        .read_format =
                                PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                };

                fd = branches_open(&attr, -1, (int) cpu, i > 0 ? fds[0] : -1, 0);
                if (fd < 0)
                        break;
        }
        all = i == n;
        if (all && n > 0) {
                g_assert_no_errno(ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0));
                g_usleep(TURNS_USEC);
                all = branches_were_on(fds[n - 1]);
        }
        while (i > 0)
                close_fd(fds[--i]);
        return all;
}

static unsigned branches_of_cpu(void) {
        unsigned n = GROUP_MAX;

        while (n > 0 && !branches_fit(0, n, false))
                n--;
        g_assert_cmpuint(n, >, 0);
        return n;
}

static void histories_on_core(void) {
        const HistoryHost host = {
                .machine = { .general = branches_of_cpu() },
                .pmu = "cpu",
                .instructions = "branches",
                .open = branches_of_order,
                .targets = { [ORDER_CPU] = true, [ORDER_SLEEPER] = true, [ORDER_SPINNER] = true },
                .strangers = { "bob", "dave", "bob", "dave" },
                .users_may = true,
                .fits = branches_fit,
                .kill = service_kill,
        };

        histories_run(&host, 60);
}

/* ---- on breakpoints ---- */

static void histories_on_breakpoints(void) {
        g_autofree char *event = watched_event(0);
        const HistoryHost host = {
                .machine = { .general = SLOTS },
                .pmu = "breakpoint",
                .instructions = event,
                .open = breakpoint_of_order,
                .targets = { [ORDER_CPU] = true, [ORDER_TASK] = true },
                .strangers = { "bob", "dave", "bob", "dave" },
                .fits = fits,
                .kill = service_kill,
        };

        histories_run(&host, 60);
}

static void test_histories(void) {
        if (n_cpus() != 2)
                g_test_skip("for machines with two CPUs");
        else if (g_strcmp0(g_getenv("PERFALLOC_TEST_HISTORIES_ON"), "core") == 0)
                histories_on_core();
        else
                histories_on_breakpoints();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/history/nothing-is-confirmed-or-refused-wrongly", test_histories);
        return g_test_run();
}
