/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tells whether a CPU has been offline in between: each time that it comes online begins another
 * generation.
 *
 * When a CPU goes offline its events end. They can still be read and enabled, with the value that
 * they had, but count nothing after the CPU is back, and no error or end of file shows it. The
 * kernel creates the CPU's sysfs directory "topology" anew each time (drivers/base/topology.c), and
 * inode numbers of sysfs are not reused; so the inode number identifies the generation.
 */

#include "core/cpuset.h"

typedef struct CpuGenerations CpuGenerations;

struct CpuGenerations {
        size_t n;
        uint64_t *ids; /* by CPU; 0: offline or unknown */
};

#define CPU_GENERATIONS_NULL ((CpuGenerations){})

/* Reads those of the CPUs, below sysfs ("/sys"). -ENOMEM. */
int cpu_generations_read(const char *sysfs, const CpuSet *cpus, CpuGenerations *ret);

/* The same from stored numbers: ids is n times eight bytes, of any alignment. */
int cpu_generations_load(const void *ids, size_t n, CpuGenerations *ret);

void cpu_generations_done(CpuGenerations *g);

/* Whether the CPU is known to have been offline in between. */
bool cpu_generations_differ(const CpuGenerations *before, const CpuGenerations *now, unsigned cpu);
