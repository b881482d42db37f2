/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The calls by which capacity and probe ask the kernel. They are all in one unit so that a test can
 * link a model of other machines in its place (test-kernel-model.h).
 */

#include <linux/perf_event.h>
#include <sys/types.h>

#include "core/cpuset.h"

typedef struct KernelTimes KernelTimes;

struct KernelTimes {
        uint64_t value, enabled, running; /* as PERF_FORMAT_TOTAL_TIME_* gives them */
};

/* perf_event_open(2), close on exec, by whoever opens events (perf-open.h): the descriptor or
 * -errno. */
int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader);

/* Opens CPU-wide events in one call, as each is a message and back where another process opens
 * events: as a group, whose leader is the first; or all but the last as a group, and the last by
 * itself when that group has been enabled. On failure nothing is open. At most KERNEL_OPEN_MAX. */
#define KERNEL_OPEN_MAX 64u
int kernel_open_group(const struct perf_event_attr *attrs, unsigned n, unsigned cpu, int *ret_fds);
int kernel_open_counting(const struct perf_event_attr *attrs, unsigned n, unsigned cpu,
                         int *ret_fds);

/* The CPU from which this thread's last events were opened, by this process or another one: the
 * tasks of that CPU did not run meanwhile. KERNEL_NOWHERE: it has opened none. */
#define KERNEL_NOWHERE UINT32_MAX
unsigned kernel_opened_from(void);

void kernel_close(int fd);

/* PERF_EVENT_IOC_ENABLE and DISABLE, of an event with its group. */
void kernel_enable(int fd);
void kernel_disable(int fd);

/* False at the end of file. The event has no other read_format than the two times. */
bool kernel_times(int fd, KernelTimes *ret);

/* Whether the CPU is offline, as the kernel knows it at this moment. */
bool kernel_is_offline(unsigned cpu);

/* How many breakpoints a CPU of this architecture has, whoever has them now; 0: nobody tells. */
unsigned kernel_breakpoint_slots(void);

uint64_t kernel_now_usec(void); /* CLOCK_MONOTONIC */
void kernel_rest(uint64_t usec);

/* The CPU that this thread is on, and those that it may be on. -ENOMEM. */
unsigned kernel_cpu(void);
int kernel_allowed(CpuSet *ret);

/* Calls f from another CPU than this one, while this thread waits, and so does not run: what f
 * returns. -EAGAIN: there is no other CPU that this process may run on, or none that had the time
 * for it within KERNEL_ELSEWHERE_USEC (a task of real time may never leave it any); f may have been
 * called, and what it did is void. */
#define KERNEL_ELSEWHERE_USEC (20 * USEC_PER_MSEC)
int kernel_elsewhere(unsigned cpu, int (*f)(void *userdata), void *userdata);
