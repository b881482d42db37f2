/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The CPUs of a group.
 */

#include "perf/group/group.h"

/* Adds parts; nothing is opened yet. The part of an offline CPU has ended until the CPU comes. */
int group_add_cpus(Group *g, const CpuSet *cpus, const CpuSet *online);

/* A CPU has gone offline: the kernel has frozen its events, so they are closed and what they
 * counted is kept. It is back: they are opened again, unless the group has yielded; a failure is in
 * error, see group_mend(). */
void group_cpu_leave(Group *g, unsigned cpu);
int group_cpu_join(Group *g, unsigned cpu, Refusal *why);

/* The kernel has moved uncore PMUs to other CPUs (pmu_table_refresh_masks()): what they counted on
 * one that is offline is counted on the other from now on. */
void group_follow_masks(Group *g);

/* After group_load(): the same for each CPU that went or came meanwhile. */
void group_follow_cpus(Group *g, const CpuSet *online);
