/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Event strings: "cycles:u" and "skl::UOPS_RETIRED:ALL" (libpfm4), "msr/tsc/" and
 * "cpu/event=0x3c,umask=0/u" (the kernel's own form, as in perf), "mem:ADDR/LEN:rwx".
 *
 * A string that begins with "mem:" is of the last kind, one with a '/' of the second; others are
 * names, of tracepoints ("sched:sched_switch") too. Generic events (cycles, page-faults, ...) need
 * no libpfm4, which is loaded for the first other name. Not thread-safe.
 */

#include "perf/event/event.h"

/* Refusals: NO_SUCH_EVENT (names the wrong part and similar names), INVALID_EVENT, BAD_ADDRESS (a
 * kernel address with :u, which excludes the kernel). On failure ret is unchanged. */
int event_parse(const PmuTable *pmus, const char *string, Event *ret, Refusal *why);

/* Calls f for each event of this machine whose whole name matches the shell glob pattern, ignoring
 * case; a non-zero return of f ends the walk and is returned. */
int event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata);
