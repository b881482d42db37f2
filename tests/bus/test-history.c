/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Histories (history.h) on breakpoints, which every machine has. PERFALLOC_TEST_HISTORIES is their
 * number; --seed repeats one run of them. */

#include "history.h"

#include <signal.h>

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

static void test_histories(void) {
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

        if (n_cpus() != 2) {
                g_test_skip("for machines with two CPUs");
                return;
        }
        histories_run(&host, 60);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/history/nothing-is-confirmed-or-refused-wrongly", test_histories);
        return g_test_run();
}
