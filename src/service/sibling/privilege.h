/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The capabilities of the service: those that the unit gives it, then fewer.
 */

#include "core/util.h"

/* Drops what neither the service nor the reader needs, from every set but the bounding one. Drops
 * CAP_SYS_ADMIN too where a test shows that CAP_PERFMON alone can open events (it cannot on
 * Debian's and Ubuntu's kernels with perf_event_paranoid at 3 and above). Before the reader is
 * forked. */
int privilege_trim(void);

/* Drops what the reader alone needs. */
int privilege_leave_to_reader(void);

/* In the reader: only reading is effective. The workers that are forked from it open events on
 * others' behalf, so what that takes stays permitted. */
int privilege_trim_reader(void);
