/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The capabilities of the service: at start it has what the unit gives, then less.
 */

#include "core/util.h"

/* Drops everything that the job never needs, from every set but the bounding one; CAP_SYS_ADMIN too
 * where a test shows that CAP_PERFMON is enough to open events (it is not on Debian's and Ubuntu's
 * kernels with perf_event_paranoid at 3 and above). Before the helper is forked. */
int privilege_trim(void);

/* Drops what only the helper needs: reading other processes. */
int privilege_leave_to_helper(void);
