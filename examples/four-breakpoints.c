/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An ordinary program that needs scarce counters and knows nothing of perfalloc: it opens a
 * hardware breakpoint on each of four variables of its own, writes to them and tells what was
 * counted. x86 has four breakpoints a CPU; whoever has one CPU-wide takes it from everybody on that
 * CPU.
 *
 * Exit status: 0 when all was counted exactly, 3 when no breakpoint was left, 4 when the kernel
 * lets this user open no events at all (perf_event_paranoid), 5 when no write at all was counted
 * (some hypervisors report none), 1 for anything else.
 */

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_VARIABLES 4
#define N_WRITES    1000

static volatile uint64_t variables[N_VARIABLES];

static int breakpoint_open(volatile uint64_t *variable) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_BREAKPOINT,
                .size = sizeof(attr),
                .bp_type = HW_BREAKPOINT_W,
                .bp_addr = (uintptr_t) variable,
                .bp_len = HW_BREAKPOINT_LEN_8,
                .exclude_kernel = 1,
                .exclude_hv = 1,
        };

        return (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int explain(int i, int error) {
        fprintf(stderr, "four-breakpoints: breakpoint %d of %d: %s\n", i + 1, N_VARIABLES,
                strerror(error));
        switch (error) {
        case ENOSPC:
                return 3;
        case EACCES:
        case EPERM:
                return 4;
        default:
                return 1;
        }
}

int main(void) {
        int fds[N_VARIABLES], n_counting = 0, n_exact = 0;

        for (int i = 0; i < N_VARIABLES; i++) {
                fds[i] = breakpoint_open(&variables[i]);
                if (fds[i] < 0)
                        return explain(i, errno);
        }

        for (int n = 0; n < N_WRITES; n++)
                for (int i = 0; i < N_VARIABLES; i++)
                        variables[i]++;

        for (int i = 0; i < N_VARIABLES; i++) {
                uint64_t counted = 0;

                if (read(fds[i], &counted, sizeof(counted)) != sizeof(counted))
                        counted = 0;
                printf("four-breakpoints: variable %d: %d writes, %llu counted\n", i + 1, N_WRITES,
                       (unsigned long long) counted);
                n_counting += counted > 0;
                n_exact += counted == N_WRITES;
        }
        if (n_counting == 0)
                return 5;
        return n_exact == N_VARIABLES ? 0 : 1;
}
