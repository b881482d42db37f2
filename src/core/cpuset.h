/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sets of CPU numbers, and the list form of /sys and cpuset(7): "0-3,8,10-11".
 *
 * The kernel's own limit (CONFIG_NR_CPUS) is 8192; numbers from CPUSET_CPUS_MAX on are refused.
 */

#include "core/refusal.h"

typedef struct CpuSet CpuSet;

#define CPUSET_CPUS_MAX 8192u
#define CPUSET_LIST_MAX 65536u /* longest list that is parsed, bytes */

struct CpuSet {
        size_t n_words;
        uint64_t *words;
};

#define CPUSET_NULL ((CpuSet){})

void cpuset_done(CpuSet *s);

int cpuset_add(CpuSet *s, unsigned cpu); /* -ENOMEM, -ERANGE */
void cpuset_remove(CpuSet *s, unsigned cpu);
void cpuset_clear(CpuSet *s); /* its memory stays */

/* Adding members of other cannot fail from now on. -ENOMEM. */
int cpuset_make_room(CpuSet *s, const CpuSet *other);

bool cpuset_has(const CpuSet *s, unsigned cpu);
bool cpuset_is_empty(const CpuSet *s);
bool cpuset_equal(const CpuSet *a, const CpuSet *b);
bool cpuset_intersects(const CpuSet *a, const CpuSet *b);
bool cpuset_is_subset(const CpuSet *part, const CpuSet *whole);
unsigned cpuset_count(const CpuSet *s);
int cpuset_copy(CpuSet *ret, const CpuSet *s); /* ret is overwritten, not freed */
int cpuset_intersect(CpuSet *ret, const CpuSet *a, const CpuSet *b); /* likewise */

/* The first member from cpu on; -1: none. */
int cpuset_next(const CpuSet *s, unsigned cpu);

#define CPU_FOREACH(cpu, s)                                                                        \
        for (int cpu = cpuset_next((s), 0); cpu >= 0; cpu = cpuset_next((s), (unsigned) cpu + 1))

/* Parses a list as /sys has it; a final newline is allowed, an empty list is an empty set.
 * REFUSAL_INVALID_ARGS names the wrong part. */
int cpuset_parse(CpuSet *ret, const char *list, Refusal *why);

/* Writes the list, ranges joined, no newline; the caller frees it. */
int cpuset_format(const CpuSet *s, char **ret);
