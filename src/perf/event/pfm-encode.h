/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Encodes an event string by libpfm4.
 */

#include "perf/event/pfm.h"

/* PFM_SUCCESS or a PFM_ERR_*. ret_extras: the string sets more than an event here has (period,
 * pinned, cpu, ...), which is not in ret. */
int pfm_encode(const Pfm *pfm, const char *string, struct perf_event_attr *ret, bool *ret_extras);
