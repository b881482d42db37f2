/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a hold or a monitor covers: for each of some PMUs a set of CPUs. One PMU on one CPU is a
 * slot.
 *
 * "All CPUs" is the set of all possible ones, so that a CPU that comes online later is covered too.
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
        ScopePart *parts; /* in the order of their PMUs, each PMU once */
};

#define SCOPE_NULL ((Scope){})

void scope_done(Scope *s);

/* Adds slots (a copy of cpus). -ENOMEM: nothing changed. */
int scope_add(Scope *s, unsigned pmu, const CpuSet *cpus);
int scope_copy(Scope *ret, const Scope *s); /* ret is overwritten, not freed */

const ScopePart *scope_find(const Scope *s, unsigned pmu); /* NULL when it has no slot there */
bool scope_has(const Scope *s, unsigned pmu, unsigned cpu);
bool scope_overlaps(const Scope *a, const Scope *b); /* an empty scope overlaps nothing */
