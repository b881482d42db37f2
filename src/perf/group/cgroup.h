/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Descriptors of control groups, as perf_event_open(2) takes them (PERF_FLAG_PID_CGROUP).
 */

#include "core/refusal.h"

/* Whether it is a directory of cgroup2, or of the hierarchy that version 1 has for perf_event
 * (cgroups(7)). REFUSAL_BAD_DESCRIPTOR. */
int cgroup_check(int fd, Refusal *why);
