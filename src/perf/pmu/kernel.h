/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The calls by which capacity and probe ask the kernel. They are all in one unit so that a test can
 * link a model of other machines in its place (kernel-model.h).
 */

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/types.h>

#include "core/util.h"

typedef struct KernelTimes KernelTimes;
typedef struct KernelPlace KernelPlace;

struct KernelTimes {
        uint64_t value, enabled, running; /* as PERF_FORMAT_TOTAL_TIME_* gives them */
};

/* perf_event_open(2), close on exec: the descriptor or -errno. */
int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader);
void kernel_close(int fd);

/* PERF_EVENT_IOC_ENABLE: 0 or -errno. */
int kernel_enable(int fd);

/* False at the end of file. The event has no other read_format than the two times. */
bool kernel_times(int fd, KernelTimes *ret);

/* Whether the CPU is offline, as the kernel knows it at this moment. */
bool kernel_is_offline(unsigned cpu);

uint64_t kernel_now_usec(void); /* CLOCK_MONOTONIC */
void kernel_rest(uint64_t usec);

/* Where this thread may run: what it was before, to be given back. */
struct KernelPlace {
        size_t size; /* 0: nothing was changed */
        cpu_set_t *before;
};

#define KERNEL_PLACE_NULL ((KernelPlace){})

/* The CPU that this thread is on, where it stays from now on. */
unsigned kernel_place_stay(KernelPlace *p);

/* Moves this thread to another CPU than this one, where it stays. False where it may run on no
 * other: it is still on this one. */
bool kernel_place_leave(KernelPlace *p, unsigned cpu);

/* The thread may run again where it might before; a CPU that comes online later included. */
void kernel_place_back(KernelPlace *p);
