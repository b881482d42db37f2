/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Points in time as people write them.
 */

#include "core/util.h"

/* "now", "today", "yesterday", "2026-11-22", "2026-11-22 14:30", "14:30" (today), or a time that
 * has passed since then: "2h", "3d". In µs of CLOCK_REALTIME, as now_usec. -EINVAL: none of these.
 */
int moment_parse(const char *text, uint64_t now_usec, uint64_t *ret);
