/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * struct perf_event_attr as this kernel knows it, and as a client sends it.
 */

#include "core/attr-rules.h"
#include "perf/pmu/pmu.h"

/* Its size in bytes in this kernel, which perf_event_open(2) tells with E2BIG; 0: unknown. */
uint32_t attr_kernel_size(void);

/* Reads an attr of n bytes as a kernel with an attr of kernel_size bytes (0: unknown) would: by its
 * member size, where 0 means 64; missing bytes are zero, and those that the kernel does not know
 * must be. The event keeps this size, for PERF_EVENT_IOC_MODIFY_ATTRIBUTES compares it. Else
 * REFUSAL_ATTR_SIZE, which names the expected size. REFUSAL_NOT_PERMITTED: fields are set that the
 * kernel may know and the service does not. */
int attr_read(const void *bytes, size_t n, uint32_t kernel_size, Attr *ret, Refusal *why);

/* What the rules call that PMU; NULL: one that is not known. */
AttrPmu attr_pmu(const Pmu *pmu);
