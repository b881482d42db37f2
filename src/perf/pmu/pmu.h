/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The PMUs of this machine, as the kernel lists them under /sys/bus/event_source/devices
 * (Documentation/ABI/testing/sysfs-bus-event_source-devices).
 */

#include <linux/perf_event.h>
#include <stdio.h>

#include "core/cpuset.h"
#include "core/shape.h"
#include "perf/pmu/cpu-generation.h"

typedef struct Pmu Pmu;
typedef struct PmuEvent PmuEvent;
typedef struct PmuTable PmuTable;

typedef enum PmuKind {
        PMU_CORE,       /* the CPUs' own counters: cpu, cpu_core, cpu_atom, armv8_pmuv3_0, ... */
        PMU_SOFTWARE,   /* counted by the kernel, never scarce */
        PMU_BREAKPOINT, /* debug registers; an open event takes a slot, enabled or not */
        PMU_TRACEPOINT, /* tracepoint, kprobe, uprobe */
        PMU_UNCORE,     /* units shared by several CPUs: has a cpumask in sysfs */
        PMU_OTHER,      /* msr, power, ... */
        _PMU_KIND_MAX,
} PmuKind;

#define PMU_EVENT_NAME_MAX 32u

/* An event that a core PMU is measured with. */
struct PmuEvent {
        char name[PMU_EVENT_NAME_MAX];
        uint32_t type;
        uint64_t config;
};

struct Pmu {
        unsigned index; /* place in the table; the ledger's number for this PMU */
        char *name;     /* the directory's name in sysfs */
        uint32_t type;  /* perf_event_attr.type */
        PmuKind kind;
        CpuSet cpus; /* where its events can be opened: "cpus" or "cpumask", else all possible */
        bool closes_to_yield; /* an event frees its counter when closed, not when disabled */

        /* What it has, see capacity.h. */
        bool measured;     /* false: nobody can tell what is free, and nothing is confirmed */
        unsigned counters; /* general counters of each CPU, debug registers; 0: not measured, or
                            * never scarce */
        unsigned n_fixed;
        PmuEvent fixed[SHAPE_FIXED_MAX]; /* events with a counter of their own, besides those */
        PmuEvent general;                /* one that takes any general counter and no other */
        char *probed; /* names of the events it was measured with, blanks between them */
        bool buddies; /* the kernel's lockup detector needs no counter, see kernel-share.h */
};

struct PmuTable {
        char *sysfs; /* "/sys", or a recorded tree in tests */
        Pmu *pmus;   /* sorted by name */
        size_t n_pmus;
        CpuSet possible; /* CPUs that may ever come online */
        CpuSet present;  /* CPUs that exist; a client may name these */
        CpuSet online;
        CpuGenerations generations; /* of the online CPUs */
};

/* Reads the tree below sysfs ("/sys"). PMUs that cannot be read are left out. -ENOMEM; -ENOENT: no
 * event_source bus. */
int pmu_table_load(PmuTable *ret, const char *sysfs);
void pmu_table_done(PmuTable *t);

/* Reads anew which CPUs are online, and their generations; the caller gets those of before.
 * -ENOMEM, -EMFILE, -ENFILE: nothing has changed. */
int pmu_table_refresh_online(PmuTable *t, CpuSet *ret_online, CpuGenerations *ret_generations);

/* Reads anew on which CPUs the events of uncore PMUs are opened: when such a CPU goes offline, the
 * kernel moves them to another one. What cannot be read stays as it was. -ENOMEM, -EMFILE, -ENFILE:
 * some may not have been read. */
int pmu_table_refresh_masks(PmuTable *t);

Pmu *pmu_table_find(const PmuTable *t, const char *name);

/* All counters of each CPU, as far as they are known. */
Shape pmu_whole(const Pmu *pmu);

/* The bit of the fixed counter that serves the event of this name; 0: there is none. */
uint32_t pmu_fixed_bit(const Pmu *pmu, const char *name);

/* The PMU that serves an event of this perf_event_attr type and config: PERF_TYPE_HARDWARE,
 * HW_CACHE and RAW belong to a core PMU (the extended type in config's upper half chooses on hybrid
 * CPUs). NULL when this machine has none. */
Pmu *pmu_table_find_event(const PmuTable *t, uint32_t type, uint64_t config);

const char *pmu_kind_name(PmuKind kind); /* "core", "software", ... */
