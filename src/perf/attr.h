/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * struct perf_event_attr as this kernel knows it.
 */

#include "core/util.h"

/* Its size in bytes. The kernel tells when it is asked to open one that is larger than it knows
 * (perf_event_open(2), E2BIG). 0 when it does not tell. */
uint32_t attr_kernel_size(void);
