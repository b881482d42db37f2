/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the kernel keeps of a core PMU for itself: the NMI watchdog counts "cycles", pinned, on
 * every CPU, in the fixed counter that serves it where there is one (Intel), else in a general one
 * (AMD).
 *
 * Kernels since 6.5 may be built with another detector behind the same sysctl, in which CPUs watch
 * one another and count nothing (CONFIG_HARDLOCKUP_DETECTOR_BUDDY). It is told by what it leaves
 * free.
 */

#include "core/shape.h"
#include "perf/pmu/pmu.h"

#define KERNEL_SHARE_PATH "/proc/sys/kernel/nmi_watchdog"
#define KERNEL_SHARE_CPUS "/proc/sys/kernel/watchdog_cpumask"
#define KERNEL_SHARE_NAME "kernel.nmi_watchdog" /* as sysctl(8) says it */

/* Reads, now, whether it runs; path is KERNEL_SHARE_PATH, or a file in tests. */
Shape kernel_share(const Pmu *pmu, const char *path);

/* Once the PMU is measured: where the detector runs and all is free on some CPU that it watches, it
 * is the one that counts nothing. CPUs of nohz_full= are usually not watched; cpus_path is
 * KERNEL_SHARE_CPUS, or a file in tests. A few CPUs are looked at, for some milliseconds where a
 * look is slow. While others count on all of these nothing is known, and the share is taken for
 * kept. */
void kernel_share_look(Pmu *pmu, const char *path, const char *cpus_path);
