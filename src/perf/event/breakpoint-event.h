/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * "mem:ADDR[/LEN][:ACCESS][:MODIFIERS]", as in perf-record(1): ADDR and LEN are numbers, ACCESS is
 * made of r, w and x. The default ACCESS is rw; the default LEN is 4, for x that of a long. What
 * the CPU supports varies (x86 has no reads alone) and is left to the kernel.
 */

#include <linux/perf_event.h>

#include "core/event-list.h"
#include "core/refusal.h"

/* INVALID_EVENT; BAD_ADDRESS for what wraps around, and for the kernel's half when only user space
 * is counted, which the kernel would refuse too. */
int breakpoint_event_parse(const char *string, struct perf_event_attr *attr, Refusal *why);
