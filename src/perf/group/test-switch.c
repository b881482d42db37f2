/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "switch.h"

#include <glib.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine.h"

#define N 40u /* enough for the threads of the team to help */

static void events_open(int fds[static N]) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_DUMMY,
                                        .disabled = 1,
                                        .exclude_kernel = 1,
                                        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED };

        for (unsigned i = 0; i < N; i++) {
                fds[i] = (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
                g_assert_cmpint(fds[i], >=, 0);
        }
}

static void events_close(int fds[static N]) {
        for (unsigned i = 0; i < N; i++)
                close_fd(fds[i]);
}

static void events_switch(const int fds[static N], unsigned long request) {
        for (unsigned i = 0; i < N; i++)
                switch_event(fds[i], request);
}

static uint64_t time_enabled(int fd) {
        uint64_t words[2];

        g_assert_cmpint(read(fd, words, sizeof(words)), ==, sizeof(words));
        return words[1];
}

/* How many count now. */
static unsigned n_on(const int fds[static N]) {
        uint64_t before[N];
        unsigned n = 0;

        for (unsigned i = 0; i < N; i++)
                before[i] = time_enabled(fds[i]);
        for (unsigned i = 0; i < N; i++)
                n += time_enabled(fds[i]) > before[i];
        return n;
}

static Team *team;

static void team_begin(void) {
        CpuSet cpus = CPUSET_NULL;

        g_assert_cmpint(cpuset_add(&cpus, (unsigned) sched_getcpu()), ==, 0);
        g_assert_cmpint(team_new(&team, 2, 1, &cpus), ==, 0);
        switches_set_team(team);
        cpuset_done(&cpus);
}

static void team_end(void) {
        switches_set_team(NULL);
        team = team_free(team);
}

static void test_alone_at_once(void) {
        int fds[N];

        events_open(fds);
        switches_gather();
        events_switch(fds, PERF_EVENT_IOC_ENABLE);
        g_assert_cmpuint(n_on(fds), ==, N);
        switches_settle();
        events_close(fds);
}

static void test_together_when_settled(void) {
        int fds[N];

        team_begin();
        events_open(fds);
        switches_gather();
        switches_gather();
        events_switch(fds, PERF_EVENT_IOC_ENABLE);
        g_assert_cmpuint(n_on(fds), ==, 0);
        switches_settle();
        g_assert_cmpuint(n_on(fds), ==, 0);
        switches_settle();
        g_assert_cmpuint(n_on(fds), ==, N);
        switch_event(fds[0], PERF_EVENT_IOC_DISABLE);
        g_assert_cmpuint(n_on(fds), ==, N - 1);
        switches_gather();
        switches_settle(); /* nothing: what is over is not made again */
        g_assert_cmpuint(n_on(fds), ==, N - 1);
        events_close(fds);
        team_end();
}

static void test_flushed_in_between(void) {
        int fds[N];

        team_begin();
        events_open(fds);
        switches_gather();
        events_switch(fds, PERF_EVENT_IOC_ENABLE);
        switches_flush();
        g_assert_cmpuint(n_on(fds), ==, N);
        events_switch(fds, PERF_EVENT_IOC_DISABLE);
        switches_settle();
        g_assert_cmpuint(n_on(fds), ==, 0);
        events_close(fds);
        team_end();
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/switch/alone-at-once", test_alone_at_once);
        g_test_add_func("/switch/together-when-settled", test_together_when_settled);
        g_test_add_func("/switch/flushed-in-between", test_flushed_in_between);
        return g_test_run();
}
