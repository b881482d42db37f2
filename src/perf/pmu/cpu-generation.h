/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which life of each CPU it is: one goes from its coming online to its going offline.
 *
 * The events of a CPU end with its life. They can still be read and enabled, and give the value
 * that they had; in the next life they count nothing, which nobody is told (the end of file of
 * perf_event_open(2) is for others). Somebody who looks again only after the CPU has come back
 * would see no difference. But the kernel makes the CPU's directory "topology" anew with each life
 * (drivers/base/topology.c), and numbers of sysfs's inodes are not used twice.
 */

#include "core/cpuset.h"

typedef struct CpuGenerations CpuGenerations;

struct CpuGenerations {
        size_t n;
        uint64_t *ids; /* by CPU; 0: it is offline, or nothing is known */
};

#define CPU_GENERATIONS_NULL ((CpuGenerations){})

/* Those of the CPUs, below sysfs ("/sys"). -ENOMEM. */
int cpu_generations_read(const char *sysfs, const CpuSet *cpus, CpuGenerations *ret);

/* The same of numbers that were written down: ids is n times eight bytes. */
int cpu_generations_load(const void *ids, size_t n, CpuGenerations *ret);

void cpu_generations_done(CpuGenerations *l);

/* Whether it is known to be another life of the CPU. */
bool cpu_generations_differ(const CpuGenerations *before, const CpuGenerations *now, unsigned cpu);
