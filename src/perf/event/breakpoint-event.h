/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * "mem:ADDR[/LEN][:ACCESS][:MODIFIERS]", as perf-record(1) has it: ADDR and LEN are numbers, ACCESS
 * is made of r, w and x. Without ACCESS reads and writes are counted; without LEN 4 bytes, or, for
 * x, as many as a long has. What of that the CPU can do differs (x86 has no reads alone): the
 * kernel decides.
 */

#include <linux/perf_event.h>

#include "core/refusal.h"

#define BREAKPOINT_EVENT_PREFIX "mem:"

/* INVALID_EVENT; BAD_ADDRESS for what wraps around, and for the kernel's half when only user space
 * is counted: the kernel would refuse it too. */
int breakpoint_event_parse(const char *string, struct perf_event_attr *attr, Refusal *why);

/* Whether all that it watches is user space's: the lower half, on every 64-bit Linux. */
bool breakpoint_event_is_user(const struct perf_event_attr *attr);
