/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a hold or a monitor covers: a set of CPUs for each of several PMUs. One PMU on one CPU is a
 * slot.
 *
 * "All CPUs" is the set of all possible CPUs, so that one that comes online later is covered too.
 */

#include "core/cpuset.h"

typedef struct Scope Scope;
typedef struct ScopePart ScopePart;

struct ScopePart {
        unsigned pmu; /* index in the PMU table */
        CpuSet cpus;  /* never empty */
};

struct Scope {
        size_t n_parts;
        ScopePart *parts; /* by ascending pmu, each once */
};

#define SCOPE_NULL ((Scope){})

void scope_done(Scope *s);

/* Adds slots (a copy of cpus). -ENOMEM: nothing changed. */
int scope_add(Scope *s, unsigned pmu, const CpuSet *cpus);
int scope_copy(Scope *ret, const Scope *s); /* ret is overwritten, not freed */

const ScopePart *scope_find(const Scope *s, unsigned pmu); /* NULL: no slot of that PMU */
bool scope_has(const Scope *s, unsigned pmu, unsigned cpu);
bool scope_overlaps(const Scope *a, const Scope *b); /* an empty scope overlaps nothing */
