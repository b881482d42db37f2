/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libpfm4, loaded on demand. Linking it would cost every process 4 ms at its start and 1.1 MB of
 * private memory, because all its tables hold addresses. Once loaded it stays.
 */

#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>

#include "core/refusal.h"

typedef struct Pfm Pfm;

/* Functions of <perfmon/pfmlib.h>. */
struct Pfm {
        __typeof__(pfm_initialize) *initialize;
        __typeof__(pfm_strerror) *strerror;
        __typeof__(pfm_get_pmu_info) *get_pmu_info;
        __typeof__(pfm_find_event) *find_event;
        __typeof__(pfm_get_event_next) *get_event_next;
        __typeof__(pfm_get_event_info) *get_event_info;
        __typeof__(pfm_get_event_attr_info) *get_event_attr_info;
        __typeof__(pfm_get_os_event_encoding) *get_os_event_encoding;
};

/* Loads and initialises the library at the first call. NOT_IMPLEMENTED: that is not possible. */
int pfm_load(const Pfm **ret, Refusal *why);
