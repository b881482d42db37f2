/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * struct perf_event_attr as this kernel knows it, and as a client hands it in.
 */

#include <sys/types.h>

#include "core/attr-rules.h"

/* Its size in bytes. The kernel tells when it is asked to open one that is larger than it knows
 * (perf_event_open(2), E2BIG). 0 when it does not tell. */
uint32_t attr_kernel_size(void);

/* Reads n bytes as the kernel of that size (0: unknown) would at their address: the size that they
 * say counts, 0 means 64, what is missing is zero and what the kernel does not know has to be.
 * Otherwise REFUSAL_ATTR_SIZE naming what the kernel expects; REFUSAL_NOT_PERMITTED for fields that
 * the kernel may know and we do not. */
int attr_read(const void *bytes, size_t n, uint32_t kernel_size, Attr *ret, Refusal *why);

/* perf_event_open(2): the descriptor or -errno; see spare.h for EMFILE. */
int attr_open(const Attr *a, pid_t pid, int cpu, int group, unsigned long flags);
