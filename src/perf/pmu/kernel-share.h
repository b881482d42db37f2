/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the kernel keeps of a core PMU for itself: the NMI watchdog counts "cycles", pinned, on
 * every CPU, in the fixed counter that serves it where there is one (Intel), else in a general one
 * (AMD).
 */

#include "core/shape.h"
#include "perf/pmu/pmu.h"

#define KERNEL_SHARE_PATH "/proc/sys/kernel/nmi_watchdog"
#define KERNEL_SHARE_NAME "kernel.nmi_watchdog" /* as sysctl(8) says it */

/* Reads, now, whether it runs; path is KERNEL_SHARE_PATH, or a file in tests. */
Shape kernel_share(const Pmu *pmu, const char *path);
