/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The capabilities of the service and its siblings: those that the unit gives, then fewer. Nothing
 * stays inheritable or ambient, and none is gained by an exec (no_new_privs). The bounding set is
 * the unit's: it takes CAP_SETPCAP to change it.
 */

#include "core/util.h"

/* Drops what neither the service nor a sibling needs. Drops CAP_SYS_ADMIN too where a test shows
 * that CAP_PERFMON alone can open events (it cannot on Debian's and Ubuntu's kernels with
 * perf_event_paranoid at 3 and above). Before the siblings are forked. */
int privilege_trim(void);

/* In the process that parses the bus, once they are forked: drops all, but for CAP_CHOWN where the
 * drop-in of the bridge to LIKWID gives it. */
int privilege_leave_to_siblings(void);

/* In the reader: CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are left. */
int privilege_trim_reader(void);

/* In the opener: CAP_PERFMON and, unless privilege_trim() dropped it, CAP_SYS_ADMIN are left. */
int privilege_trim_opener(void);
