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

typedef struct Lives Lives;

struct Lives {
        size_t n;
        uint64_t *ids; /* by CPU; 0: it is offline, or nothing is known */
};

#define LIVES_NULL ((Lives){})

/* Those of the CPUs, below sysfs ("/sys"). -ENOMEM. */
int lives_read(const char *sysfs, const CpuSet *cpus, Lives *ret);

/* The same of numbers that were written down: ids is n times eight bytes. */
int lives_load(const void *ids, size_t n, Lives *ret);

void lives_done(Lives *l);

/* Whether it is known to be another life of the CPU. */
bool lives_differ(const Lives *before, const Lives *now, unsigned cpu);
